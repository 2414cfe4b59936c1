"""Memory that was freed goes back to the machine, and garbage is collected in small steps."""

from __future__ import annotations

import gc
import re
from pathlib import Path

from nightmail.server.memory import OLDER_EVERY, YOUNG, Collector, limit_arenas, trim


def resident_kib() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


def test_what_a_burst_took_and_freed_goes_back() -> None:
    limit_arenas()
    burst = [bytes([number % 256]) * 60_000 for number in range(1_000)]
    # Every hundredth stays, so that the heap does not shrink by itself.
    kept = burst[::100]
    before = resident_kib()
    del burst
    trim()
    assert before - resident_kib() > 40_000
    assert len(kept) == 10


def collections() -> list[int]:
    """So far, of each generation."""
    return [each["collections"] for each in gc.get_stats()]


def test_a_turn_ends_with_a_collection_when_there_are_many_new_objects_and_looks_at_older_ones_sometimes() -> None:
    thresholds = gc.get_threshold()
    # Otherwise Python collects by itself while the test makes objects.
    gc.set_threshold(1_000_000, *thresholds[1:])
    try:
        gc.collect()
        collector, before = Collector(), collections()
        collector.end_turn()
        assert collections() == before
        kept: list[list[object]] = []
        for _ in range(OLDER_EVERY):
            kept += [[] for _ in range(YOUNG)]
            collector.end_turn()
        assert [now - then for now, then in zip(collections(), before, strict=True)] == [OLDER_EVERY - 1, 1, 0]
    finally:
        gc.set_threshold(*thresholds)
