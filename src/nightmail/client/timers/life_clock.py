"""The time by which lives are counted: it never goes back, also not with a restart.

Knows:   the newest time that was saved, and what the device's clock said then. If the clock was set back while the
         program was not running, time goes on from the saved one, as fast as the clock does from there on. Only the
         pause in which the clock was set back is not counted.
Touches: one errand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from nightmail.client.machine.context import Context

ERRAND = "life clock"
SAVE_MS = 60_000
"""How often the time is saved while nothing else is written."""

_encode = msgspec.msgpack.Encoder().encode
_read: Callable[[bytes], tuple[int, int] | int] = msgspec.msgpack.Decoder(tuple[int, int] | int).decode
"""(time, clock), or the time alone: so the first version saved it."""


class LifeClock:
    def __init__(self, context: Context) -> None:
        self._context = context
        state = context.store.errand(ERRAND)
        saved = _read(state) if state else 0
        self._from, self._clock = saved if isinstance(saved, tuple) else (saved, saved)
        """The time that was saved, and what the device's clock said then. From the first look on: the time at it."""
        self._started_at: int | None = None
        """What the device's clock said when it was first looked at."""
        self._saved = self._from

    def time(self) -> int:
        now = self._context.now
        if not now:
            return self._from  # nobody has said yet how late it is
        if self._started_at is None:
            self._started_at = now
            if now < self._from:
                # The clock is behind, perhaps since long ago: what it says of the pause is right, unless it was set
                # back in it. A clock that is not behind may have been put right in the pause, so it is followed.
                self._from += max(0, now - self._clock)
        return max(now, self._from + now - self._started_at)

    def by_clock(self, time: int) -> int:
        """What the device's clock says at that time."""
        return time - (self.time() - self._context.now)

    def save(self) -> None:
        self._saved = self.time()
        self._context.store.put_errand(ERRAND, _encode((self._saved, self._context.now)))

    @property
    def save_due(self) -> int:
        return self._saved + SAVE_MS
