"""Counts by size, in the form that Prometheus wants them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

COMMIT_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)
LATENCY_MS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
LAG_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


class Histogram:
    """Counts by size, as plain integers."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> Iterable[tuple[str, int]]:
        """(upper bound in seconds, how many are not above it), as Prometheus wants them."""
        so_far = 0
        for bound, count in zip(bounds_in_seconds(self.bounds), self.counts, strict=True):
            so_far += count
            yield bound, so_far


def bounds_in_seconds(bounds_ms: Sequence[int]) -> tuple[str, ...]:
    """The upper bounds of a histogram's buckets, as they are scraped."""
    return (*(str(bound / 1000) for bound in bounds_ms), "+Inf")
