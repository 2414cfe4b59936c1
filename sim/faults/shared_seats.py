"""Seats that all nodes share, in a place that is slow, loses answers, is cut off, is away, and forgets everything.

Knows:   the seats, signatures and claims, and when each ends.
Touches: nothing of the program: what the real one does by scripts is said here once more, in plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from nightmail.engine.cluster.ports import WakeClaim
from nightmail.engine.memory import WAKE_MS
from nightmail.engine.ports import HELD, Failed, Seat
from sim.world.world import World

Result = TypeVar("Result")

SIGNED_MS = 600
TIMEOUT_MS = 60
LATE = Failed("it does not answer")


class SeatPlace:
    """What the nodes share."""

    def __init__(self, world: World, seat_ms: int) -> None:
        self._world, self._seat_ms = world, seat_ms
        self.seats: dict[int, tuple[Seat, int]] = {}
        self._signs: dict[int, int] = {}
        self._claims: dict[int, int] = {}
        self.epoch = 1
        self.slow_ms = 3
        self.breaks = 0.0
        """How often a link breaks, with all that is on it."""
        self.is_away = False

    def wipe(self) -> None:
        self.epoch += 1
        self.seats.clear()
        self._signs.clear()
        self._claims.clear()

    def seat_of(self, device: int) -> Seat | None:
        seat, until = self.seats.get(device, (None, 0))
        return seat if self._world.now < until else None

    def take(self, device: int, seat: Seat, *, wins: bool) -> int:
        present = self.seat_of(device)
        if present and present.connection != seat.connection and present.since >= seat.since:
            if not wins:
                return 0
            seat = seat._replace(since=present.since + 1)
        self.seats[device] = seat, self._world.now + self._seat_ms
        return seat.since

    def leave(self, device: int, seat: Seat) -> bool:
        present = self.seat_of(device)
        is_mine = present is not None and present.connection == seat.connection
        if is_mine:
            del self.seats[device]
        return is_mine

    def sign(self, node: int, epoch: str, *, is_whole: bool) -> str:
        if is_whole and epoch == str(self.epoch):
            self._signs[node] = self._world.now + SIGNED_MS
        return str(self.epoch)

    def claim(self, device: int, epoch: str, nodes: Collection[int]) -> WakeClaim | Failed:
        now = self._world.now
        if epoch != str(self.epoch):
            return Failed("it has lost everything")
        if self.seat_of(device):
            return WakeClaim(HELD)
        if (until := self._claims.get(device, 0)) > now:
            return WakeClaim(until - now)
        self._claims[device] = now + WAKE_MS
        return WakeClaim(0, [node for node in nodes if self._signs.get(node, 0) <= now])


class SimSeats:
    """One node's link to them: `SharedSeats`."""

    def __init__(self, world: World, place: SeatPlace) -> None:
        self._world, self._place = world, place
        self._life = 0
        self._arrives = 0
        self.is_cut = False

    def take(self, device: int, seat: Seat, done: Callable[[int | Failed], None], *, wins: bool) -> None:
        self._ask(lambda: self._place.take(device, seat, wins=wins), done)

    def leave(self, device: int, seat: Seat, done: Callable[[bool | Failed], None]) -> None:
        self._ask(lambda: self._place.leave(device, seat), done)

    def find(self, device: int, done: Callable[[Seat | None | Failed], None]) -> None:
        self._ask(lambda: self._place.seat_of(device), done)

    def sign(self, node: int, epoch: str, *, is_whole: bool, done: Callable[[str | Failed], None]) -> None:
        self._ask(lambda: self._place.sign(node, epoch, is_whole=is_whole), done)

    def claim(
        self, device: int, epoch: str, nodes: Collection[int], done: Callable[[WakeClaim | Failed], None]
    ) -> None:
        self._ask(lambda: self._place.claim(device, epoch, nodes), done)

    def _ask(self, do: Callable[[], Result | Failed], done: Callable[[Result | Failed], None]) -> None:
        """In order, until the link breaks: then everything on it fails, done or not."""
        world, place, life = self._world, self._place, self._life
        if self.is_cut or place.is_away:
            world.later(world.chance.choice((0, TIMEOUT_MS)), lambda: done(LATE))
            return
        self._arrives = max(self._arrives, world.now + world.between(0, place.slow_ms))

        def arrived() -> None:
            if life != self._life or self.is_cut or place.is_away:
                world.later(TIMEOUT_MS, lambda: done(LATE))
                return
            result = do()
            if world.maybe(place.breaks):
                world.hit("registry lost an answer")
                self._life += 1
                world.later(TIMEOUT_MS, lambda: done(LATE))
            else:
                world.later(world.between(0, place.slow_ms), lambda: done(result))

        world.later(self._arrives - world.now, arrived)
