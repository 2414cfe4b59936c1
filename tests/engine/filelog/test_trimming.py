"""What is trimmed is gone, sooner or later, and what is not stays."""

from __future__ import annotations

import pytest

from nightmail.engine.filelog.segment import name_of
from nightmail.engine.ports import Damaged
from tests.engine.filelog.memoryfiles import MemoryFiles
from tests.engine.filelog.rig import (
    HOUR,
    Steps,
    X,
    append,
    fail_sync,
    found,
    heal,
    opened,
)


def test_trimming_removes_whole_segments_and_keeps_the_rest() -> None:
    files = MemoryFiles()
    log = opened(files)
    for _ in range(6):
        append(log, X)
    assert files.names() == [name_of(n) for n in (1, 2, 3, 4)]
    log.trim(3, 0)
    assert files.names() == [name_of(n) for n in (2, 3, 4)]
    assert found(log, 3) == [X, X, X]
    with pytest.raises(Damaged, match="offsets from 1 to 2 are missing"):
        log.replay(0)


def test_a_log_that_is_trimmed_to_nothing_keeps_counting() -> None:
    files = MemoryFiles()
    log = opened(files)
    for _ in range(6):
        append(log, X)
    log.trim(6, 0)
    files = files.after_power_cut()
    log = opened(files, after=6)
    assert (log.last, found(log, 6)) == (6, [])
    assert append(log, b"a") == 7
    assert found(opened(files.after_power_cut(), after=6), 6) == [b"a"]


def test_on_a_log_at_rest_trimmed_bytes_are_gone_once_they_are_old() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"secret", at=HOUR)
    log.trim(1, now=HOUR + 1)
    assert any(b"secret" in data for data in files.durable.values())
    log.trim(1, now=2 * HOUR)
    assert not any(b"secret" in data for data in files.durable.values())
    names = files.names()
    log.trim(1, now=9 * HOUR)
    assert files.names() == names, "an empty segment does not age"
    again = opened(files.after_power_cut(), after=1)
    assert (again.last, append(again, b"b")) == (1, 2)


def test_on_a_busy_log_an_old_segment_is_left_behind() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"secret", at=1)
    append(log, b"b", at=HOUR)
    append(log, b"c", at=HOUR + 1)
    log.trim(2, 0)
    assert not any(b"secret" in data for data in files.durable.values())
    assert found(log, 2) == [b"c"]


def test_bytes_of_failed_appends_are_gone_with_the_rest() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a")
    log.trim(1, now=HOUR + 1)
    files.syncs_fail = True
    append(log, b"secret", at=HOUR + 1)
    heal(files)
    assert any(b"secret" in data for data in files.seen.values())
    log.trim(1, now=2 * HOUR + 1)
    assert not any(b"secret" in data for data in files.seen.values())
    assert append(log, b"b") == 2


def test_the_rest_of_a_torn_batch_is_gone_with_the_next_trim() -> None:
    files = MemoryFiles()
    log = opened(files)
    fail_sync(files)
    append(log, b"secret" * 200)
    files = files.after_power_cut(lambda _, sector: sector == 1)
    log = opened(files)
    assert any(b"secret" in data for data in files.seen.values())
    log.trim(0, now=2 * HOUR)
    assert not any(b"secret" in data for data in files.seen.values())
    assert append(log, b"a") == 1


def test_a_trimmed_segment_of_some_size_makes_room_at_once() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, X)
    log.trim(1, 0)
    assert files.names() == [name_of(2), name_of(3)]


def test_an_append_during_the_change_to_an_empty_segment_waits_for_it() -> None:
    files, steps, answers = MemoryFiles(), Steps(), list[int | None]()
    log = opened(files, execute=steps)
    steps.run()
    log.append(1, [X], answers.append)
    steps.run()
    log.trim(1, 0)
    log.append(1, [b"a"], answers.append)
    steps.run()
    assert answers == [1, 2]
    assert found(opened(files.after_power_cut(), after=1), 1) == [b"a"]


def test_a_removal_that_failed_is_tried_again() -> None:
    files = MemoryFiles()
    log = opened(files)
    for _ in range(6):
        append(log, X)
    files.removals_fail = True
    log.trim(4, 0)
    heal(files)
    log.trim(4, 0)
    assert files.names() == [name_of(n) for n in (3, 4)]


def test_removed_segments_that_come_back_do_no_harm() -> None:
    files = MemoryFiles()
    log = opened(files)
    for _ in range(8):
        append(log, X)
    first = files.durable[name_of(1)]
    log.trim(5, 0)
    back = MemoryFiles({**files.durable, name_of(1): first})
    assert name_of(2) not in back.names()
    log = opened(back, after=5)
    assert found(log, 5)[-3:] == [X, X, X]
    assert name_of(1) not in back.names()
