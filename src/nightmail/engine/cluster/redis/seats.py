"""The seats of all nodes on Redis: `SharedSeats` by scripts.

Knows:   the time by the clock of Redis, as of its last word.
Touches: the link.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from secrets import token_hex
from typing import Any

from nightmail.engine.cluster.ports import WakeClaim
from nightmail.engine.memory import WAKE_MS
from nightmail.engine.ports import Failed, Seat

from .link import RedisLink
from .scripts import CLAIM, LEAVE, SIGN, TAKE, RedisKeys

SIGNED_MS = 5_000
"""How long a node's signature stands."""


class RedisSeats:
    def __init__(
        self, link: RedisLink, keys: RedisKeys, seat_ms: int, timeout_ms: int, pace: Callable[[], int]
    ) -> None:
        self._link, self._keys, self._seat_ms, self._timeout_ms, self._pace = link, keys, seat_ms, timeout_ms, pace
        self._ahead_ms: int | None = None
        """The clock of Redis, less the pace of this node; not more."""

    def take(self, device: int, seat: Seat, done: Callable[[int | Failed], None], *, wins: bool) -> None:
        values = self._deadline, seat.connection, seat.since, seat.node, self._seat_ms, int(wins)
        self._link.call(TAKE, [self._keys.seat(device)], values, done)

    def leave(self, device: int, seat: Seat, done: Callable[[bool | Failed], None]) -> None:
        def left(answer: Any) -> None:
            done(answer if isinstance(answer, Failed) else answer == 1)

        self._link.call(LEAVE, [self._keys.seat(device)], (self._deadline, seat.connection), left)

    def find(self, device: int, done: Callable[[Seat | None | Failed], None]) -> None:
        self._link.ask(("GET", self._keys.seat(device)), lambda answer: done(_seat(answer)))

    def sign(self, node: int, epoch: str, *, is_whole: bool, done: Callable[[str | Failed], None]) -> None:
        values = self._deadline, epoch, token_hex(8), int(is_whole), SIGNED_MS
        self._link.call(SIGN, [self._keys.epoch, self._keys.node(node)], values, partial(self._signed, done))

    def _signed(self, done: Callable[[str | Failed], None], answer: Any) -> None:
        if isinstance(answer, Failed):
            # Its clock may have been set, or its successor have another one.
            self._ahead_ms = None
            done(answer)
            return
        epoch, now = answer
        self._ahead_ms = int(now) - self._pace()
        done(str(epoch))

    def claim(
        self, device: int, epoch: str, nodes: Collection[int], done: Callable[[WakeClaim | Failed], None]
    ) -> None:
        listed, keys = list(nodes), self._keys

        def claimed(answer: Any) -> None:
            if isinstance(answer, Failed):
                done(answer)
            else:
                wait_ms, *unsigned = answer
                done(WakeClaim(int(wait_ms), [listed[int(index)] for index in unsigned]))

        names = [keys.epoch, keys.seat(device), keys.wake(device), *map(keys.node, listed)]
        self._link.call(CLAIM, names, (self._deadline, epoch, WAKE_MS), claimed)

    @property
    def _deadline(self) -> int:
        """By then it is answered, or given up. 0: the clock of Redis is not known yet."""
        return 0 if self._ahead_ms is None else self._pace() + self._ahead_ms + 2 * self._timeout_ms


def _seat(answer: Any) -> Seat | None | Failed:
    if answer is None or isinstance(answer, Failed):
        return answer
    try:
        connection, since, node = str(answer).split(" ", 2)
        return Seat(node, int(connection), int(since))
    except ValueError:
        return Failed("Redis: a seat that nobody wrote so")
