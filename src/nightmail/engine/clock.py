"""The time that batches are given: the wall clock's, unless it has just leapt ahead.

Knows:   how far the wall clock should have moved since it was last believed, by the monotonic clock (pace).
Never:   stops time: while the wall clock is doubted, time goes on at the monotonic clock's pace.

What is too old expires for good, and time never runs backward for a shard. So a wall clock that is set
wrong and corrected soon must have no effect. A machine that was suspended looks the same: the time that
it was suspended is believed a minute late. A leap backward is followed at once: it expires nothing.
"""

from __future__ import annotations

from collections.abc import Callable

LEAP_MS = 60_000
"""What the wall clock may gain at once: time synchronization never sets it further ahead."""
LASTING_MS = 60_000
"""A leap that has lasted this long is believed: a wrong clock is usually corrected before."""


class BatchClock:
    """Milliseconds since 1970. `on_leap(ahead_ms, believed)` hears of a leap when it is doubted, and when believed."""

    def __init__(self, wall: Callable[[], int], pace: Callable[[], int], on_leap: Callable[[int, bool], None]) -> None:
        self._wall, self._pace, self._on_leap = wall, pace, on_leap
        self._start = wall() - pace()
        """The time of pace 0, by the wall clock as it was last believed; at first it is believed without comparison."""
        self._doubted: int | None = None
        """The same by the wall clock that is doubted; None if it is believed."""
        self._since = 0
        """Since when it is doubted, by the pace."""

    def __call__(self) -> int:
        pace = self._pace()
        start = self._wall() - pace
        ahead = start - self._start
        if ahead <= LEAP_MS:
            self._start, self._doubted = start, None
        elif self._doubted is None:
            self._doubted, self._since = start, pace
            self._on_leap(ahead, False)
        elif abs(start - self._doubted) > LEAP_MS:
            self._doubted, self._since = start, pace  # It has leapt again.
        elif pace - self._since >= LASTING_MS:
            self._start, self._doubted = start, None
            self._on_leap(ahead, True)
        return self._start + pace
