"""SQLite on the simulated disk: what its failures look like to the rows."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from nightmail.engine.ports import Checkpoint, Failed, Overtaken, RowKey, saving
from nightmail.engine.sqlite import SqliteRows
from nightmail.model.rows import Kept
from sim.faults.disk import Disk, PowerCut
from sim.faults.disk_vfs import DiskVfs

SHARD = RowKey(Kept.SHARD, 0)


def inline(job: Callable[[], None]) -> None:
    job()


def calm(operation: str, path: str) -> None:
    pass


@pytest.fixture
def disk() -> Disk:
    return Disk(Random(5))


@pytest.fixture
def vfs(disk: Disk) -> Iterator[DiskVfs]:
    vfs = DiskVfs("test-disk", disk, Random(5))
    yield vfs
    vfs.unregister()


def a_store(vfs: DiskVfs) -> SqliteRows:
    return SqliteRows(Path("data"), post=inline, execute=inline, entropy=bytes, vfs=vfs.name, alone=True)


def save(rows: SqliteRows, upto: int) -> Overtaken | Failed | None:
    outcomes: list[Overtaken | Failed | None] = []
    rows.save(Checkpoint(upto, upto, rows=[saving(SHARD, upto, b"%d" % upto)]), outcomes.append)
    (outcome,) = outcomes
    return outcome


def shard_row(rows: SqliteRows) -> object:
    answers: list[object] = []
    rows.load([SHARD], answers.append)
    return answers


def fail_at(wanted: str, code: int, times: int = 1) -> Callable[[str, str], None]:
    left = times

    def before(operation: str, path: str) -> None:
        nonlocal left
        if operation == wanted and left:
            left -= 1
            raise OSError(code, "planted")

    return before


def test_what_was_confirmed_survives_a_power_cut(vfs: DiskVfs, disk: Disk) -> None:
    rows = a_store(vfs)
    assert save(rows, 1) is None
    disk.power_cut()
    rows.close()
    disk.power_on()
    again = a_store(vfs)
    assert (again.pointer, shard_row(again)) == (1, [[b"1"]])
    again.close()


def test_a_cut_within_sqlite_reaches_the_caller_and_everything_can_be_closed(vfs: DiskVfs, disk: Disk) -> None:
    rows = a_store(vfs)

    def before(operation: str, path: str) -> None:
        raise PowerCut

    disk.before = before
    with pytest.raises(PowerCut):
        save(rows, 1)
    rows.close()
    disk.before = calm
    disk.power_on()
    again = a_store(vfs)
    assert again.pointer in (0, 1)
    again.close()


@pytest.mark.parametrize(("operation", "code"), [("sync", errno.EIO), ("write", errno.EIO), ("write", errno.ENOSPC)])
def test_a_disk_error_fails_the_save_or_the_save_is_whole_and_a_repeat_succeeds(
    vfs: DiskVfs, disk: Disk, operation: str, code: int
) -> None:
    rows = a_store(vfs)
    for upto in range(1, 20):
        disk.before = fail_at(operation, code)
        outcome = save(rows, upto)
        disk.before = calm
        expected = upto - 1 if outcome else upto
        assert rows.pointer == expected
        assert shard_row(rows) == [[b"%d" % expected if expected else None]]
        assert save(rows, upto) is None
        assert (rows.pointer, shard_row(rows)) == (upto, [[b"%d" % upto]])
    rows.close()


def test_while_the_disk_is_broken_saves_fail_and_afterwards_they_work(vfs: DiskVfs, disk: Disk) -> None:
    rows = a_store(vfs)
    save(rows, 1)
    disk.before = fail_at("write", errno.EIO, times=1_000)
    outcomes = [save(rows, 2) for _ in range(3)]
    assert all(isinstance(outcome, Failed) for outcome in outcomes)
    disk.before = calm
    assert save(rows, 2) is None
    assert (rows.pointer, shard_row(rows)) == (2, [[b"2"]])
    rows.close()


def test_a_full_disk_does_not_stop_reading(vfs: DiskVfs, disk: Disk) -> None:
    rows = a_store(vfs)
    save(rows, 1)
    disk.before = fail_at("write", errno.ENOSPC, times=1_000)
    outcome = save(rows, 2)
    assert isinstance(outcome, Failed)
    assert "no space is left" in outcome.why
    assert shard_row(rows) == [[b"1"]]
    disk.before = calm
    rows.close()
