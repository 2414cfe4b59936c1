"""A file log on files in memory, small enough to be filled, and whoever asks it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

from nightmail.engine.filelog import FileLog
from nightmail.engine.filelog.files import Files
from nightmail.engine.filelog.segment import SECTOR
from nightmail.engine.ports import Log
from nightmail.engine.worker import Execute, Job
from tests.engine.filelog.memoryfiles import MemoryFiles

IDENTITY = b"a folder"
SEGMENT = 8 * SECTOR
HOUR = 3_600_000
X = b"x" * 1500
"""Two of these fill a segment."""


def at_once(job: Job) -> None:
    job()


def entropy() -> Callable[[int], bytes]:
    salts = itertools.count(0x5EED_0000)
    return lambda size: (next(salts) % (1 << 8 * size)).to_bytes(size, "big")


def opened(files: Files, after: int = 0, execute: Execute = at_once, identity: bytes = IDENTITY) -> FileLog:
    return FileLog(
        files, identity, after=after, post=at_once, execute=execute, entropy=entropy(), segment_bytes=SEGMENT
    )


def append(log: Log, *records: bytes, at: int = 1) -> int | None:
    answers: list[int | None] = []
    log.append(at, records, answers.append)
    (answer,) = answers
    return answer


def found(log: Log, after: int = 0) -> list[bytes]:
    """The records above `after`, which must follow each other without a hole."""
    batches = list(log.replay(after))
    expected = batches[0].first if batches else after + 1
    assert expected <= after + 1
    for batch in batches:
        assert batch.first == expected
        expected = batch.last + 1
    assert expected == log.last + 1
    return [record for batch in batches for record in batch.records]


class Steps:
    """An `Execute` that waits until it is told."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()

    def __call__(self, job: Job) -> None:
        self.jobs.append(job)

    def run(self) -> None:
        while self.jobs:
            self.jobs.popleft()()


def fail_write(files: MemoryFiles) -> None:
    files.writes_fail = True


def fail_sync(files: MemoryFiles) -> None:
    files.syncs_fail = True


def heal(files: MemoryFiles) -> None:
    files.writes_fail = files.syncs_fail = files.full = files.removals_fail = False
