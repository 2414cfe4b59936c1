"""Quantiles of what a histogram counted within a time.

Knows:   how the counts stood when it was last asked.
Touches: the histogram, to read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from .histogram import Histogram


class Recent:
    """What was added to a histogram since the last `take`."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram, self._before = histogram, list(histogram.counts)

    def take(self) -> list[int]:
        """The counts since the last call, by bucket."""
        now = list(self._histogram.counts)
        added = [count - before for count, before in zip(now, self._before, strict=True)]
        self._before = now
        return added

    @property
    def bounds(self) -> tuple[int, ...]:
        return self._histogram.bounds


def quantile(bounds: Sequence[int], counts: Sequence[int], part: float) -> float:
    """Where `part` of what was counted lies below, as if each bucket were filled evenly; NaN if nothing was counted.

    What lies above the highest bound is told as that bound.
    """
    if not (total := sum(counts)):
        return nan
    wanted, so_far = part * total, 0
    for at, count in enumerate(counts[:-1]):
        if count and so_far + count >= wanted:
            low = bounds[at - 1] if at else 0
            return low + (bounds[at] - low) * (wanted - so_far) / count
        so_far += count
    return float(bounds[-1])
