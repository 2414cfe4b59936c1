"""The time that batches are given: the wall clock's, unless that is doubted.

Knows:   the newest time that the log and the data folder hold, and how far time should have gone on since then, by the
         monotonic clock (pace).
Never:   stops time while the wall clock is doubted: time goes on at the monotonic clock's pace.

What is too old expires for good. So a wall clock that is far ahead is doubted, and believed only when it has stayed so
for `lasting_ms`: one that is put right before then has no effect. Nothing tells a wrong clock from a server that was
off, or a machine that was suspended; so a start allows for `start_ahead_ms`, and a longer absence is believed late.

A clock that was put back is followed at once, because it expires nothing: the shard's own time waits until the clock
has caught up with it. If that is far, a wrong clock was believed before, and an operator sets the time back
(`ClockSetBack`).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.limits import DAY_MS
from nightmail.model.records import ClockBelieved

BELIEVED = ClockState.BELIEVED


class ClockLimits(Struct, frozen=True):
    leap_ms: int = 60_000
    """What the wall clock may gain at once before it is doubted: time synchronization never sets it further ahead."""
    start_ahead_ms: int = DAY_MS
    """How far the wall clock may be ahead of the newest stored time at a start: longer than most servers are off, and
    short compared with the time that messages are kept."""
    lasting_ms: int = 600_000
    """A clock that stays ahead for this long is believed: a machine that boots with a wrong clock has had the time to
    ask a time server."""


class BatchClock:
    """Milliseconds since 1970. `on_change` hears when something else is thought of the wall clock than before."""

    def __init__(
        self,
        wall: Callable[[], int],
        pace: Callable[[], int],
        stored: Callable[[], int],
        folder_ms: int = 0,
        limits: ClockLimits | None = None,
        on_change: Callable[[ClockSeen], None] = lambda _: None,
    ) -> None:
        """`stored` is the shard's own time, once it is recovered; `folder_ms` what the data folder remembers, or 0."""
        self._wall, self._pace, self._stored, self._on_change = wall, pace, stored, on_change
        self._folder_ms, self._limits = folder_ms, limits or ClockLimits()
        self._start: int | None = None
        """The time of pace 0, by the wall clock as it was last believed."""
        self._bound = self._limits.start_ahead_ms
        """How far ahead the wall clock may be at once."""
        self._doubted: int | None = None
        """The time of pace 0 by the wall clock that is doubted; None if it is not."""
        self._since = 0
        """Since when it is doubted, by the pace."""
        self.doubted_from = 0
        """The time when the doubt began; 0: the wall clock is not doubted."""
        self._last = 0
        self.seen = ClockSeen(BELIEVED, 0, 0)
        """As of the last call."""

    def __call__(self) -> int:
        pace, wall, stored = self._pace(), self._wall(), self._stored()
        start = self._start
        if (
            # The usual case, asked for every batch: a clock that was believed neither leaps nor is set back.
            self.seen.state is BELIEVED
            and start is not None
            and self._last <= wall
            and stored <= wall <= start + pace + self._bound
        ):
            self._start, self._last, self.seen = wall - pace, wall, ClockSeen(BELIEVED, wall, wall)
            return wall
        return self._judge(pace, wall, stored)

    def _judge(self, pace: int, wall: int, stored: int) -> int:
        """The time that is gone by, and what is thought of the wall clock."""
        limits = self._limits
        if self._start is None:
            self._start = (max(stored, self._folder_ms) or wall) - pace
        expected = max(self._start + pace, stored)
        ahead = wall - expected
        if ahead <= self._bound:
            self._start = wall - pace
            self._doubted, self.doubted_from = None, 0
            state = ClockState.BEHIND if wall < stored - limits.leap_ms else BELIEVED
            if state is BELIEVED:
                self._bound = limits.leap_ms
        else:
            state = ClockState.AHEAD
            self._doubt(wall - pace, pace, expected)
        # What is filed during a doubt has a later time than what was filed before it.
        time = max(self._start + pace, self.doubted_from + 1)
        if time < self._last <= time + limits.leap_ms:
            time = self._last  # Set back a little: the log's times need not go back.
        self._last = time
        before, self.seen = self.seen.state, ClockSeen(state, wall, max(time, stored))
        if state is not before:
            self._on_change(self.seen)
        return time

    def _doubt(self, start: int, pace: int, time: int) -> None:
        if self._doubted is None:
            self.doubted_from = max(time - 1, self._stored())
        if self._doubted is None or abs(start - self._doubted) > self._limits.leap_ms:
            self._doubted, self._since = start, pace  # It must last from here on.

    def to_believe(self) -> ClockBelieved | None:
        """The record that makes the shard believe a clock that has stayed ahead for long enough; None if none has.

        Time leaps by that record only, so that the fold knows what was filed during the doubt.
        """
        if self._doubted is None or self._pace() - self._since < self._limits.lasting_ms:
            return None
        return ClockBelieved(self.doubted_from, self._wall())

    def believe(self) -> None:
        """For a shard of fold 1, which does not take that record."""
        self._start = self._wall() - self._pace()
        self._doubted, self.doubted_from = None, 0
