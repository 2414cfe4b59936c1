from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightmail.engine.data_folder import LOCK_NAME, DataFolder
from nightmail.engine.ports import InUse, Unwritable


def test_the_folder_is_made_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data" / "here")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / LOCK_NAME).stat().st_mode & 0o777 == 0o600
    folder.close()


def test_a_folder_is_held_by_one_and_says_by_whom(tmp_path: Path) -> None:
    held = DataFolder(tmp_path)
    held.sign()
    with pytest.raises(InUse, match=f"is in use by process {os.getpid()}$"):
        DataFolder(tmp_path)
    held.close()
    held.close()
    DataFolder(tmp_path).close()


def test_a_holder_that_cannot_be_read_is_another_process(tmp_path: Path) -> None:
    held = DataFolder(tmp_path)
    with pytest.raises(InUse, match=r"is in use by another process$"):
        DataFolder(tmp_path)
    held.close()


def test_until_it_is_signed_nothing_in_it_is_written(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_bytes(b"4711\n")
    os.utime(tmp_path / LOCK_NAME, ns=(1, 1))
    DataFolder(tmp_path).close()
    assert (tmp_path / LOCK_NAME).read_bytes() == b"4711\n"
    assert (tmp_path / LOCK_NAME).stat().st_mtime_ns == 1


def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match=r"cannot be used as the data folder: Not a directory$"):
        DataFolder(tmp_path / "file" / "data")
    with pytest.raises(Unwritable, match=r"cannot be used as the data folder: File exists$"):
        DataFolder(tmp_path / "file")


def test_a_folder_that_was_looked_at_and_never_served_remembers_no_time(tmp_path: Path) -> None:
    for _ in range(2):
        refused = DataFolder(tmp_path)
        assert refused.time_ms == 0
        refused.close()


def test_a_folder_remembers_the_time_that_it_was_told_last(tmp_path: Path) -> None:
    new = DataFolder(tmp_path)
    assert new.time_ms == 0
    new.sign()
    new.remember_time(1_700_000_000_123)
    new.close()
    for signs in (True, False, True):
        again = DataFolder(tmp_path)
        if signs:
            again.sign()
        assert again.time_ms == 1_700_000_000_123
        again.close()
