"""The time that batches are given: the wall clock's, unless that has just leapt ahead.

Knows:   how far the wall clock has got, by the machine's own pace, since it was last believed.
Never:   holds time up: while the wall clock is doubted, time goes on at that pace.

What is too old ends for good, and time never runs backward for a shard. So a clock that somebody puts
wrong, and right again, must not be heard at all. A machine that was suspended looks the same: what
it slept through is believed a minute late. A leap backward is followed at once: it ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable

LEAP_MS = 60_000
"""What the wall clock may gain at once: whoever keeps it in step never puts it further ahead."""
LASTING_MS = 60_000
"""A leap that has lasted so long is believed: whoever sees a clock go wrong puts it right before."""


class Clock:
    """Milliseconds since 1970. `on_leap` is told how far it is ahead: when it is doubted, and when it is believed."""

    def __init__(self, wall: Callable[[], int], pace: Callable[[], int], on_leap: Callable[[int, bool], None]) -> None:
        self._wall, self._pace, self._on_leap = wall, pace, on_leap
        self._start = wall() - pace()
        """When the pace was 0, by the wall clock as it was last believed: at first there is nothing to compare with."""
        self._doubted: int | None = None
        """The same by a wall clock that is not believed; None: it is."""
        self._since = 0
        """Since when, by the pace."""

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
            self._doubted, self._since = start, pace  # It has leapt once more.
        elif pace - self._since >= LASTING_MS:
            self._start, self._doubted = start, None
            self._on_leap(ahead, True)
        return self._start + pace
