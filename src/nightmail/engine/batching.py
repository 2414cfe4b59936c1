"""How many records fit into one append."""

from __future__ import annotations

from collections.abc import Sequence

from .ports import RECORD_OVERHEAD


def records_at_once(records_max: int, span: int) -> int:
    """How many records one append to a log with this span may have."""
    return records_max if span == 1 else min(records_max, span)


def count_fitting(waiting: Sequence[bytes], records_max: int, bytes_max: int) -> int:
    """How many of those that wait are appended together: the first one in any case, and more while they fit."""
    count = min(len(waiting), records_max)
    size = sum(map(len, waiting[:count])) + RECORD_OVERHEAD * count
    while size > bytes_max and count > 1:
        count -= 1
        size -= len(waiting[count]) + RECORD_OVERHEAD
    return count
