"""Memory that was freed goes back to the machine."""

from __future__ import annotations

import re
from pathlib import Path

from nightmail.server.memory import limit_arenas, trim


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
