"""Sets of numbers as sorted, disjoint, non-touching intervals: `[low, high, low, high, …]`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Spans: TypeAlias = list[int]


def add_span(spans: Spans, low: int, high: int) -> None:
    """Put `low` to `high` (both included) into the set."""
    if not spans or low > spans[-1] + 1:
        spans += (low, high)
        return
    if low == spans[-1] + 1:
        spans[-1] = high
        return
    # Bounds at an odd index are highs: an interval that touches us ends at low - 1 or later,
    # and one that touches us from above starts at high + 1 or earlier.
    first = bisect_left(spans, low - 1) & ~1
    last = (bisect_right(spans, high + 1) + 1) & ~1
    if first < last:
        low, high = min(low, spans[first]), max(high, spans[last - 1])
    spans[first:last] = (low, high)


def pairs(spans: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(spans[::2], spans[1::2], strict=True)


def count_in(spans: Sequence[int]) -> int:
    return sum(high - low + 1 for low, high in pairs(spans))


def contains(spans: Sequence[int], number: int) -> bool:
    at = bisect_right(spans, number)
    return bool(at & 1) or (at > 0 and spans[at - 1] == number)


def numbers(spans: Sequence[int]) -> Iterator[int]:
    for low, high in pairs(spans):
        yield from range(low, high + 1)


def spans_of(members: Iterable[int]) -> Spans:
    spans: Spans = []
    for number in members:
        add_span(spans, number, number)
    return spans
