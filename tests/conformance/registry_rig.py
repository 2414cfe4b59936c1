"""Two nodes that ask one registry, or one each over what they share; and time that passes when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from nightmail.engine.cluster.ports import SharedSeats
from nightmail.engine.cluster.registry import ClusterRegistry
from nightmail.engine.memory import MemoryRegistry
from nightmail.engine.ports import Registry, Seat
from sim.faults.shared_seats import SeatPlace, SimSeats
from sim.world.world import World

SEAT_MS = 90_000
HERE, THERE = "here", "there"


class Rig(Protocol):
    nodes: dict[str, Registry]
    """By name."""
    displaced: list[tuple[int, Seat]]

    @property
    def now(self) -> int: ...

    def answer(self, ask: Callable[[Callable[[Any], None]], None]) -> Any:
        """Wait for what is asked."""
        ...

    def settle(self) -> None:
        """Wait for everything that was said."""
        ...

    def wait(self, ms: int) -> None:
        """Let time pass."""
        ...

    def lose(self) -> None:
        """Everything is forgotten; the nodes notice it."""
        ...

    def close(self) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.registry, self.now = MemoryRegistry(SEAT_MS), 1_000_000
        self.nodes: dict[str, Registry] = {HERE: self.registry, THERE: self.registry}
        self.displaced: list[tuple[int, Seat]] = []
        self.registry.attend(lambda device, seat: self.displaced.append((device, seat)))

    def answer(self, ask: Callable[[Callable[[Any], None]], None]) -> Any:
        answers: list[Any] = []
        ask(answers.append)
        return answers[0]

    def settle(self) -> None: ...

    def wait(self, ms: int) -> None:
        self.now += ms

    def lose(self) -> None:
        seated = [(device, seat) for device, (seat, _) in self.registry._seats.items()]  # pyright: ignore[reportPrivateUsage]
        self.registry.lose(self.now)
        for device, seat in seated:
            self.registry.take(device, seat, self.now)

    def close(self) -> None: ...


class Links:
    """Nodes that answer each other at once."""

    def __init__(self, number: int, all_nodes: dict[int, ClusterRegistry]) -> None:
        self._number, self._all = number, all_nodes

    @property
    def nodes(self) -> Collection[int]:
        return [node for node in self._all if node != self._number]

    def claim_wake(self, node: int, device: int, then: Callable[[int], None]) -> None:
        then(self._all[node].asked(self._number, device))


def two_nodes(
    seats: Callable[[], SharedSeats], pace: Callable[[], int], displaced: list[tuple[int, Seat]]
) -> dict[str, ClusterRegistry]:
    by_number: dict[int, ClusterRegistry] = {}
    for number in (1, 2):
        made = by_number[number] = ClusterRegistry(number, seats(), Links(number, by_number), pace)
        made.attend(lambda device, seat: displaced.append((device, seat)))
    return {HERE: by_number[1], THERE: by_number[2]}


class Simulated:
    def __init__(self) -> None:
        self.world = World(1)
        self.displaced: list[tuple[int, Seat]] = []
        self.place = SeatPlace(self.world, SEAT_MS)
        self.clustered = two_nodes(lambda: SimSeats(self.world, self.place), lambda: self.world.now, self.displaced)
        self.nodes: dict[str, Registry] = dict(self.clustered)
        self.settle()

    @property
    def now(self) -> int:
        return self.world.now

    def answer(self, ask: Callable[[Callable[[Any], None]], None]) -> Any:
        answers: list[Any] = []
        ask(answers.append)
        self._run(lambda: bool(answers))
        return answers[0]

    def _run(self, so: Callable[[], bool]) -> None:
        for _ in range(100):
            if so():
                return
            self.world.run_until(self.world.now + 1)
        raise AssertionError("nobody answers")

    def settle(self) -> None:
        """Each signs twice: once to hear of the epoch."""
        for _ in range(2):
            for node in self.clustered.values():
                node._sign_at = 0  # pyright: ignore[reportPrivateUsage]
                node.tick()
            self.world.run_until(self.world.now + 10)

    def wait(self, ms: int) -> None:
        self.world.run_until(self.world.now + ms)
        self.settle()

    def lose(self) -> None:
        self.place.wipe()
        self.settle()
        self.settle()

    def close(self) -> None: ...
