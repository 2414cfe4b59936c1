"""How many records fit into one append."""

from __future__ import annotations

from collections.abc import Sequence

from .ports import RECORD_OVERHEAD


def count_fitting(waiting: Sequence[bytes], records_max: int, bytes_max: int, span: int = 1) -> int:
    """How many of those that wait are appended together: the first one in any case, and more while they fit.

    `span` is the log's.
    """
    count = min(len(waiting), records_max if span == 1 else min(records_max, span))
    size = sum(map(len, waiting[:count])) + RECORD_OVERHEAD * count
    while size > bytes_max and count > 1:
        count -= 1
        size -= len(waiting[count]) + RECORD_OVERHEAD
    return count
