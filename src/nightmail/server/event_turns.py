"""A node's turns of the event loop: what arrives in one is flushed together at its end, and time passes in ticks.

Knows:   whether a flush is asked for, and how late the ticks are.
Touches: the event loop. A callback that raises ends the node (`fallen.py`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from .fallen import Guard
from .heart import clock, pace

SHORT_TICK = 0.4
"""The event loop's timers, and the clock, may be off by a little: a tick soon after another is left out."""
UNTIL_S = 0.025


class EventTurns(ABC):
    TICK_S = 0.05

    def __init__(self) -> None:
        self.fell: asyncio.Future[None]
        self._flushing = False
        self._tick_at = 0.0
        self._ticking: asyncio.TimerHandle | None = None
        self._closed = False

    def _begin(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._guard = Guard(self._event_loop.create_future())
        self.fell = self._guard.fell

    def _begin_ticks(self) -> None:
        self._tick_at = self._event_loop.time()
        self._tick()

    def _end(self) -> bool:
        """False: it had ended before."""
        if self._closed:
            return False
        self._closed = True
        if hasattr(self, "_guard"):
            self._guard.closed = True
        if self._ticking:
            self._ticking.cancel()
        return True

    @abstractmethod
    def _flush(self) -> None:
        """At the end of a turn in which somebody said `_soon`."""

    @abstractmethod
    def _on_tick(self, late_ms: float) -> None: ...

    def _soon(self) -> None:
        """Something was submitted or is to be sent: flush at the end of this turn."""
        if not self._flushing:
            self._flushing = True
            self._event_loop.call_soon(self._guard, self._flush_once)

    def _flush_once(self) -> None:
        self._flushing = False
        self._flush()

    def _tick(self) -> None:
        now = self._event_loop.time()
        late_ms = max(0.0, (now - self._tick_at) * 1000)
        # When a slot of due items ends by the clock: what is due in it is then late by no more than the slot is long.
        wait_s = self.TICK_S - clock() / 1000 % self.TICK_S
        wait_s += self.TICK_S if wait_s < SHORT_TICK * self.TICK_S else 0.0
        self._tick_at = now + wait_s
        self._ticking = self._event_loop.call_later(wait_s, self._guard, self._tick)
        self._on_tick(late_ms)

    def _post(self, callback: Callable[[], None]) -> None:
        """From any thread."""
        self._event_loop.call_soon_threadsafe(self._guard, callback)

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._event_loop.call_later(delay_ms / 1000, self._guard, callback)

    async def _until(self, so: Callable[[], bool], most_ms: int) -> bool:
        deadline = pace() + most_ms
        while not (reached := so()) and pace() < deadline and not self.fell.done():  # noqa: ASYNC110 (the ticks do it)
            await asyncio.sleep(UNTIL_S)
        return reached
