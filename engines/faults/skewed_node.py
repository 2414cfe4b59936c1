"""A node whose clock is wrong: `python -m engines.faults.skewed_node FILE serve …` is `nightmail serve …`.

Knows:   a file of 8 bytes: by how many milliseconds its clock is wrong, now.
Touches: the clock that stamps. The times of its log lines are true.
"""

from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

from nightmail.cli.app import main
from nightmail.server import heart

SKEW_BYTES = 8


def write_skew(file: Path, skew_ms: int) -> None:
    """In place: a node has it mapped."""
    with file.open("r+b" if file.exists() else "w+b") as opened:
        opened.write(skew_ms.to_bytes(SKEW_BYTES, "little", signed=True))


class SkewedTime:
    """In place of the module `time`."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._skew = mmap.mmap(opened.fileno(), SKEW_BYTES, prot=mmap.PROT_READ)

    def time_ns(self) -> int:
        return time.time_ns() + int.from_bytes(self._skew[:], "little", signed=True) * 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


if __name__ == "__main__":
    file = Path(sys.argv.pop(1))
    setattr(heart, "time", SkewedTime(file))  # noqa: B010 (a module has no such type)
    sys.argv[0] = "nightmail"
    main()
