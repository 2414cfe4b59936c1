"""Admission of newcomers: how many connect per second, and how many may stay unknown.

Knows:   connections without a whole request (callers) and those without a `Hello` (strangers), oldest first.
Touches: a caller or stranger that has to make room.
Never:   looks at what a newcomer says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nightmail.wire.closing import CloseCode

from .counters import Counters
from .limits import GatewayLimits
from .ports import SessionPort
from .rates import Bucket


class Caller(Protocol):
    """A connection at the door."""

    def turn_away(self) -> None: ...


class Admission:
    def __init__(
        self, limits: GatewayLimits, counters: Counters, pace: Callable[[], int], chance: Callable[[], float]
    ) -> None:
        self._limits, self._counters, self._pace, self._chance = limits, counters, pace, chance
        self._bucket = Bucket(limits.connects_per_s, limits.connects_burst, pace())
        self._last_turn = 0.0
        """When the newcomer that was refused last may come back."""
        self._callers: dict[Caller, None] = {}
        self._strangers: dict[SessionPort, None] = {}

    def wait_ms(self) -> int:
        """Admit one more connection and return 0, or return after how many ms it should try again."""
        now, limits = self._pace(), self._limits
        if self._bucket.take(now):
            return 0
        self._counters.not_admitted += 1
        # Each one gets a time of its own. Given the same time, they would all come back together.
        self._last_turn = max(self._last_turn + 1_000 / limits.connects_per_s, now + limits.retry_ms)
        return int(self._last_turn - now + limits.retry_ms * self._chance())

    def add_caller(self, caller: Caller) -> None:
        """A connection from which no whole request has arrived yet."""
        self._callers[caller] = None
        if len(self._callers) > self._limits.strangers:
            self._counters.strangers_dropped += 1
            oldest = next(iter(self._callers))
            del self._callers[oldest]
            oldest.turn_away()

    def remove_caller(self, caller: Caller) -> None:
        """Its request has arrived, or the connection is gone. May be called again."""
        self._callers.pop(caller, None)

    def add_stranger(self, session: SessionPort) -> None:
        """A session that has not said which device it is."""
        self._strangers[session] = None
        if len(self._strangers) > self._limits.strangers:
            self._counters.strangers_dropped += 1
            # Closing a session removes it from here.
            next(iter(self._strangers)).close(CloseCode.BUSY)

    def remove_stranger(self, session: SessionPort) -> None:
        """Its device is recognized, or the session has ended. May be called again."""
        self._strangers.pop(session, None)
