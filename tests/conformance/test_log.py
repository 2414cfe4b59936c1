"""Every `Log`, held to the words of ports.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightmail.engine.filelog import FileLog
from nightmail.engine.filelog.files import OsFiles
from nightmail.engine.memory import MemoryLog
from nightmail.engine.ports import Damaged, Log, Stored


def inline(job: Callable[[], None]) -> None:
    job()


def file_log(folder: Path) -> Log:
    return FileLog(
        OsFiles(folder),
        b"identity",
        after=0,
        post=inline,
        execute=inline,
        entropy=random.Random(1).randbytes,
        segment_bytes=4_096,
    )


@pytest.fixture(params=[lambda _: MemoryLog(), file_log], ids=["memory", "file"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    made: Log = request.param(tmp_path)
    yield made
    made.close()


def append(log: Log, at: int, *records: bytes) -> int | None:
    answers: list[int | None] = []
    log.append(at, records, answers.append)
    (first,) = answers
    return first


def replay(log: Log, after: int) -> list[tuple[int, int, list[bytes]]]:
    return [(batch.first, batch.at, list(batch.records)) for batch in log.replay(after)]


def test_at_birth_it_is_empty(log: Log) -> None:
    assert (log.last, log.tight, replay(log, 0)) == (0, False, [])


def test_offsets_start_at_one_and_have_no_holes(log: Log) -> None:
    assert [append(log, 5, b"a", b"b"), append(log, 5, b"c"), append(log, 6, b"", b"e")] == [1, 3, 4]
    assert log.last == 5


def test_batches_come_back_as_they_were_appended(log: Log) -> None:
    append(log, 5, b"a", b"")
    append(log, 4, b"c" * 700)
    append(log, 9, b"d")
    assert replay(log, 0) == [(1, 5, [b"a", b""]), (3, 4, [b"c" * 700]), (4, 9, [b"d"])]
    assert Stored(1, 5, [b"a", b""]).last == 2


def test_a_replay_begins_with_the_batch_that_reaches_beyond(log: Log) -> None:
    append(log, 1, b"a", b"b")
    append(log, 2, b"c")
    assert [batch.first for batch in log.replay(0)] == [1, 3]
    assert [batch.first for batch in log.replay(1)] == [1, 3]
    assert [batch.first for batch in log.replay(2)] == [3]
    assert [batch.first for batch in log.replay(3)] == []


def test_what_is_trimmed_does_not_disturb_what_is_not(log: Log) -> None:
    for n in range(1, 31):
        append(log, n, b"%d" % n * 200)
    log.trim(25, 0)
    assert replay(log, 25) == [(n, n, [b"%d" % n * 200]) for n in range(26, 31)]
    assert (append(log, 31, b"next"), log.last) == (31, 31)


def test_what_was_trimmed_cannot_be_replayed(log: Log) -> None:
    for n in range(1, 31):
        append(log, n, b"%d" % n * 200)
    log.trim(30, 0)
    with pytest.raises(Damaged):
        replay(log, 0)


def test_a_log_that_is_trimmed_to_its_end_goes_on_counting(log: Log) -> None:
    append(log, 1, b"a", b"b")
    log.trim(2, 0)
    assert (log.last, replay(log, 2)) == (2, [])
    assert append(log, 2, b"c") == 3
    assert replay(log, 2) == [(3, 2, [b"c"])]
