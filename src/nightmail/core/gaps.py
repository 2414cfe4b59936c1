"""Sequence numbers that will never bring anything: kept sorted, merged, and shorter than the queue."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from nightmail.model.rows import Gap, Queue
from nightmail.model.words import Reason


def add_gap(gaps: list[Gap], seq: int, reason: Reason) -> None:
    """Note that `seq` is no more. Neighbours with the same reason become one."""
    at = bisect_left(gaps, seq, key=lambda gap: gap.low)
    low = high = seq
    before, after = at, at
    if at > 0 and gaps[at - 1].high == seq - 1 and gaps[at - 1].reason == reason:
        before, low = at - 1, gaps[at - 1].low
    if at < len(gaps) and gaps[at].low == seq + 1 and gaps[at].reason == reason:
        after, high = at + 1, gaps[at].high
    gaps[before:after] = [Gap(low, high, reason)]


def drop_gaps(gaps: list[Gap], upto: int) -> None:
    """Forget gaps that the device has acknowledged; one that reaches past `upto` keeps its rest."""
    kept = bisect_left(gaps, upto + 1, key=lambda gap: gap.high)
    del gaps[:kept]
    if gaps and gaps[0].low <= upto:
        gaps[0] = Gap(upto + 1, gaps[0].high, gaps[0].reason)


def gap_at(gaps: Sequence[Gap], seq: int) -> Gap | None:
    at = bisect_left(gaps, seq, key=lambda gap: gap.high)
    return gaps[at] if at < len(gaps) and gaps[at].low <= seq else None


def first_waiting(queue: Queue) -> int:
    """The oldest sequence number that has an entry, or head + 1."""
    seq = queue.acked + 1
    for gap in queue.gaps:
        if gap.low > seq:
            break
        seq = gap.high + 1
    return seq
