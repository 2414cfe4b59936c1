from __future__ import annotations

import errno
from random import Random

import pytest

from sim.faults.disk import SECTOR, Before, Disk, DiskFile, PowerCut

OLD, NEW = b"o" * SECTOR, b"n" * SECTOR


def a_disk(seed: int = 1) -> Disk:
    return Disk(Random(seed))


def cut(disk: Disk) -> None:
    disk.power_cut()
    disk.power_on()


def a_file(disk: Disk, sectors: int) -> DiskFile:
    file = disk.files("data").create("file", sectors * SECTOR)
    file.write(0, OLD * sectors)
    file.sync()
    return file


def content(disk: Disk) -> bytes:
    file = disk.files("data").open("file")
    return file.read(0, file.size())


def test_what_is_written_can_be_read_at_once() -> None:
    file = a_file(a_disk(), 2)
    file.write(100, b"abc")
    assert (file.read(99, 5), file.size(), file.read(2 * SECTOR, 9)) == (b"oabco", 2 * SECTOR, b"")


def test_what_was_synced_survives() -> None:
    for seed in range(50):
        disk = a_disk(seed)
        file = a_file(disk, 2)
        file.write(SECTOR, NEW)
        file.sync()
        cut(disk)
        assert content(disk) == OLD + NEW


def test_what_was_not_synced_is_old_or_new_sector_by_sector() -> None:
    seen: set[bytes] = set()
    for seed in range(200):
        disk = a_disk(seed)
        a_file(disk, 3).write(0, NEW * 3)
        cut(disk)
        seen.add(content(disk)[::SECTOR])
        assert {content(disk)[i : i + SECTOR] for i in (0, SECTOR, 2 * SECTOR)} <= {OLD, NEW}
    assert len(seen) == 8


def test_a_file_that_grew_has_its_old_or_new_size_or_one_between() -> None:
    sizes: set[int] = set()
    for seed in range(200):
        disk = a_disk(seed)
        a_file(disk, 1).write(SECTOR, NEW * 3)
        cut(disk)
        sizes.add(len(content(disk)))
    assert sizes == {SECTOR, 2 * SECTOR, 3 * SECTOR, 4 * SECTOR}


def test_names_are_durable_only_after_their_folder_was_synced() -> None:
    seen: set[bool] = set()
    for seed in range(50):
        disk = a_disk(seed)
        disk.create("data/made").sync()
        cut(disk)
        seen.add(disk.exists("data/made"))
        a_file(disk, 1)  # created durably, by contract
        cut(disk)
        assert disk.exists("data/file")
        disk.remove("data/file")
        cut(disk)
        seen.add(disk.exists("data/file"))
    assert seen == {True, False}


def test_a_handle_from_before_the_cut_is_dead_and_without_power_nothing_works() -> None:
    disk = a_disk()
    file = a_file(disk, 1)
    disk.power_cut()
    with pytest.raises(OSError, match="the power is off"):
        disk.open("data/file")
    disk.power_on()
    with pytest.raises(OSError, match="the power was cut"):
        file.read(0, 1)
    file.close()
    assert content(disk) == OLD


def test_the_power_can_be_cut_at_any_operation() -> None:
    disk = a_disk()
    file = a_file(disk, 1)

    def before(operation: str, path: str) -> None:
        assert (operation, path) == ("sync", "data/file")
        raise PowerCut

    disk.before = before
    with pytest.raises(PowerCut):
        file.sync()
    assert not disk.is_on


def test_after_a_failed_sync_nobody_can_tell_and_the_next_one_says_nothing() -> None:
    durable: set[bytes] = set()
    shown: set[bytes] = set()
    for seed in range(100):
        disk = a_disk(seed)
        file = a_file(disk, 1)
        file.write(0, NEW)
        disk.before = fail_with(errno.EIO)
        with pytest.raises(OSError, match="planted"):
            file.sync()
        disk.before = lambda operation, path: None
        shown.add(file.read(0, 1))
        file.sync()
        cut(disk)
        durable.add(content(disk)[:1])
    assert durable == shown == {b"o", b"n"}


def test_a_full_disk_takes_some_of_a_write_from_the_front() -> None:
    seen: set[bytes] = set()
    for seed in range(50):
        disk = a_disk(seed)
        file = a_file(disk, 2)
        disk.before = fail_with(errno.ENOSPC)
        with pytest.raises(OSError, match="planted"):
            file.write(0, NEW * 2)
        disk.before = lambda operation, path: None
        seen.add(file.read(0, 2 * SECTOR)[::SECTOR])
    assert seen == {b"oo", b"no", b"nn"}


def fail_with(code: int) -> Before:
    def before(operation: str, path: str) -> None:
        raise OSError(code, "planted")

    return before


def test_one_seed_is_one_history() -> None:
    def history(seed: int) -> bytes:
        disk = a_disk(seed)
        for n in range(5):
            file = a_file(disk, 8) if n == 0 else disk.open("data/file")
            file.write(n * 100, NEW * 4)
            cut(disk)
        return content(disk)

    assert history(3) == history(3)
    assert len({history(seed) for seed in range(20)}) > 1
