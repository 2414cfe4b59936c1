"""What the node's figures were, second by second for 15 minutes and minute by minute for a week; in memory only.

Knows:   two rings of a fixed size. A restart begins with empty ones.
Touches: nothing: `sampling.py` says what is put in.
Never:   grows: 72 bytes for a sample of 16 columns, 0.8 MB in all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from math import nan
from typing import NamedTuple

SECONDS = 15 * 60
MINUTES = 7 * 24 * 60
MINUTE_MS = 60_000


class Merge(Enum):
    """How several samples become one."""

    MEAN = "mean"
    HIGHEST = "highest"


class Column(NamedTuple):
    name: str
    merge: Merge


class SampleSpan(NamedTuple):
    """SampleSpan in the order in which they were taken."""

    last: int
    """The number of the newest one; the first that was ever taken has 1."""
    times: list[int]
    columns: list[list[float]]
    """NaN: nothing was measured."""


class Ring:
    """The newest `size` samples."""

    def __init__(self, columns: int, size: int) -> None:
        self._times = array("q", bytes(8 * size))
        self._columns = [array("f", bytes(4 * size)) for _ in range(columns)]
        self._size = size
        self.last = 0

    def add(self, at_ms: int, values: Sequence[float]) -> None:
        place = self.last % self._size
        self._times[place] = at_ms
        for column, value in zip(self._columns, values, strict=True):
            column[place] = value
        self.last += 1

    def after(self, number: int) -> SampleSpan:
        """Those with a higher number than this, as far as they are kept."""
        count = min(max(0, self.last - number), self.last, self._size)
        first, end = (self.last - count) % self._size, self.last % self._size
        wraps = count and end <= first

        def pick(ring: array[float]) -> list[float]:
            found = ring[first:] + ring[:end] if wraps else ring[first : first + count]
            return [round(value, 3) for value in found]

        times = self._times[first:] + self._times[:end] if wraps else self._times[first : first + count]
        return SampleSpan(self.last, times.tolist(), [pick(column) for column in self._columns])


class FigureHistory:
    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.seconds, self.minutes = Ring(len(columns), SECONDS), Ring(len(columns), MINUTES)
        self._minute: list[list[float]] = []
        self._minute_at = 0

    def add(self, at_ms: int, pace_ms: int, values: Sequence[float], minute: Callable[[], dict[str, float]]) -> None:
        """A second's sample. `minute` is asked, when a minute is over, for columns that are not merged from seconds."""
        self.seconds.add(at_ms, values)
        self._minute_at = self._minute_at or pace_ms
        self._minute.append(list(values))
        if pace_ms - self._minute_at >= MINUTE_MS:
            told = minute()
            merged = merge(self.columns, list(zip(*self._minute, strict=True)))
            self.minutes.add(at_ms, [told.get(c.name, value) for c, value in zip(self.columns, merged, strict=True)])
            self._minute, self._minute_at = [], pace_ms


def merge(columns: Sequence[Column], values: Sequence[Sequence[float]]) -> list[float]:
    """One sample from the samples of each column. What was not measured does not count."""
    return [_merged(column.merge, found) for column, found in zip(columns, values, strict=True)]


def thinned(columns: Sequence[Column], samples: SampleSpan, together: int) -> SampleSpan:
    """The same with `together` samples in place of one, beginning with the newest; each has its last one's time."""
    if together <= 1:
        return samples
    begin = len(samples.times) % together
    cuts = [slice(max(0, at - together), at) for at in range(begin or together, len(samples.times) + 1, together)]
    return SampleSpan(
        samples.last,
        [samples.times[cut.stop - 1] for cut in cuts],
        [
            [_merged(column.merge, found[cut]) for cut in cuts]
            for column, found in zip(columns, samples.columns, strict=True)
        ],
    )


def _merged(how: Merge, values: Sequence[float]) -> float:
    there = [value for value in values if value == value]  # noqa: PLR0124 (NaN is not itself)
    if not there:
        return nan
    return max(there) if how is Merge.HIGHEST else round(sum(there) / len(there), 3)
