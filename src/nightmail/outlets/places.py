"""Who may call now: places in all, places for each receiver, and few for receivers that do not answer.

A receiver that hangs keeps its places until its calls time out. So one that has not answered its last call, and one
that was never called, has one place, and all of these together have places of their own: the others keep theirs,
however many receivers hang.

Knows:   how many calls to each origin are under way, which ones wait, and whose turn is next.
Never:   calls, or reads a clock: `now` is given, in milliseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class PlaceLimits(Struct, frozen=True):
    calls: int = 512
    """Calls under way at once, to all receivers together."""
    host_calls: int = 32
    """Of these, to one receiver (scheme, host and port)."""
    unproven_calls: int = 128
    """Of these, to receivers that have not answered their last call, or were never called; each has one at a time."""
    unproven_wait_ms: int = 10_000
    """A call that waits this long for such a receiver, in ms, has failed as `pool_exhausted` and may be repeated."""
    hosts: int = 10_000
    """Receivers of which it is remembered that they answer."""


class _Origin(Generic[T]):
    __slots__ = ("busy", "proven", "waiting")

    def __init__(self) -> None:
        self.busy = 0
        self.proven = False
        self.waiting: deque[tuple[int, T]] = deque()


class Places(Generic[T]):
    """Add calls, take those that may begin, and say when each has ended."""

    def __init__(self, limits: PlaceLimits) -> None:
        self._limits = limits
        self._origins: dict[str, _Origin[T]] = {}
        self._turns: tuple[dict[str, None], dict[str, None]] = {}, {}
        """Origins with a call that may begin as far as they are concerned: unproven, proven. The first is next."""
        self._most = limits.unproven_calls, limits.calls - limits.unproven_calls
        self._busy = [0, 0]
        """Calls under way: to unproven receivers, and to proven ones."""
        self.waiting = 0

    @property
    def busy(self) -> int:
        return sum(self._busy)

    @property
    def origins(self) -> int:
        """Receivers that are remembered."""
        return len(self._origins)

    def add(self, origin: str, call: T, now: int) -> None:
        found = self._origins.get(origin)
        if found is None:
            found = self._origins[origin] = _Origin()
        found.waiting.append((now, call))
        self.waiting += 1
        self._line_up(origin, found)

    def take(self) -> Iterator[tuple[str, bool, T]]:
        """Every call that may begin now, with its origin, and with whether that is proven: `leave` wants to know."""
        for proven in (False, True):
            turns = self._turns[proven]
            while turns and self._busy[proven] < self._most[proven]:
                origin = next(iter(turns))
                del turns[origin]
                found = self._origins[origin]
                _, call = found.waiting.popleft()
                self.waiting -= 1
                found.busy += 1
                self._busy[proven] += 1
                self._line_up(origin, found)
                yield origin, proven, call

    def leave(self, origin: str, *, was_proven: bool, answered: bool) -> None:
        """A call has ended."""
        found = self._origins[origin]
        found.busy -= 1
        self._busy[was_proven] -= 1
        if found.proven != answered:
            self._turns[found.proven].pop(origin, None)
            found.proven = answered
        self._line_up(origin, found)
        if not found.busy and not found.waiting and (not found.proven or len(self._origins) > self._limits.hosts):
            self._turns[found.proven].pop(origin, None)
            del self._origins[origin]

    def overdue(self, now: int) -> Iterator[T]:
        """Calls that have waited too long for a receiver that does not answer. They wait no more."""
        before = now - self._limits.unproven_wait_ms
        for origin, found in list(self._origins.items()):
            while not found.proven and found.waiting and found.waiting[0][0] <= before:
                self.waiting -= 1
                yield found.waiting.popleft()[1]
            if not found.waiting:
                self._turns[found.proven].pop(origin, None)
                if not found.busy and not found.proven:
                    del self._origins[origin]

    def _line_up(self, origin: str, found: _Origin[T]) -> None:
        most = self._limits.host_calls if found.proven else 1
        if found.waiting and found.busy < most:
            self._turns[found.proven].setdefault(origin)
