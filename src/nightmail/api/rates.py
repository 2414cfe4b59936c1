"""Rate limits by address, handle or account: a number within a time, and as many at once.

Knows:   the recent use of each key. A key whose use has decayed to zero need not be remembered.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.model.refusals import RateLimited

from .problems import refused

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
FORGOTTEN_PART = 10
"""When there are too many keys, a tenth is forgotten."""


class Rate:
    """`most` within `within_ms` for each of `keys` keys; 0: no limit. The keys with the least use are forgotten first.

    With `stern`, a key that has reached its limit is not forgotten before it may act again: otherwise many other keys
    could push it out. The caller must then bound how many such keys there can be.
    """

    def __init__(
        self, most: int, within_ms: int, keys: int, pace: Callable[[], int], *, stern: bool = False
    ) -> None:  # fmt: skip
        self._most, self._within_ms, self._keys, self._pace, self._stern = most, within_ms, keys, pace, stern
        self._used: dict[str, tuple[float, int]] = {}
        """Key → (use, at this time)."""
        self._spared = 0
        """How many of them must not be forgotten, as of the last look."""

    def check(self, key: str) -> None:
        """Raises a Problem if one more would be too many. Counts nothing."""
        used = self._now(key)
        if self._most and used + 1 > self._most:
            raise refused(RateLimited(max(1, int((used + 1 - self._most) * self._within_ms / self._most))))

    def take(self, key: str) -> None:
        """Count one. Raises a Problem, and counts nothing, if there were too many."""
        self.check(key)
        if not self._most:
            return
        used = self._now(key)
        self._used.pop(key, None)
        self._used[key] = used + 1, self._pace()
        if len(self._used) > self._keys + self._spared:
            self._forget()

    def _forget(self) -> None:
        """A part of them at once, so that one who comes with many costs little."""
        now = {key: self._now(key) for key in self._used}
        spared = {key for key, used in now.items() if self._stern and used + 1 > self._most}
        self._spared = len(spared)
        others = sorted((key for key in now if key not in spared), key=lambda key: now[key])
        excess = len(self._used) - self._spared - self._keys
        for key in others[: max(0, excess) + self._keys // FORGOTTEN_PART]:
            del self._used[key]

    def _now(self, key: str) -> float:
        used, since = self._used.get(key, (0.0, 0))
        return max(0.0, used - (self._pace() - since) * self._most / self._within_ms) if used else 0.0
