from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightmail.engine.blobs.folder import NO_SPACE, SHORT, FolderBlobs
from nightmail.engine.blobs.port import BlobFailed, Held
from nightmail.model.blobs import BlobId
from tests.conformance.test_blobs import ask, put

BLOB = BlobId(1 << 48 | 5, bytes(range(16)))


def open_folder(folder: Path, reserve_bytes: int = 0) -> FolderBlobs:
    def at_once(job: Callable[[], None]) -> None:
        job()

    return FolderBlobs(folder, post=at_once, execute=at_once, reserve_bytes=reserve_bytes)


def test_nothing_is_written_where_space_is_reserved_for_others(tmp_path: Path) -> None:
    blobs = open_folder(tmp_path, reserve_bytes=1 << 62)
    assert ask(blobs.write, BLOB, 0, b"x") == NO_SPACE
    assert ask(blobs.held, BLOB) is None


def test_a_full_disk_is_said_and_what_was_confirmed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = open_folder(tmp_path)
    ask(blobs.write, BLOB, 0, b"safe")
    ask(blobs.confirm, BLOB, 4)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        failed = ask(blobs.write, BLOB, 4, b"more")
    assert failed == BlobFailed("the media folder cannot be used: the disk is full (ENOSPC)", is_full=True)
    assert ask(blobs.held, BLOB) == Held(4, is_whole=False)


def test_a_file_gets_its_last_name_only_after_it_was_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs, steps = open_folder(tmp_path), list[str]()
    for name in ("fsync", "fdatasync", "rename"):
        real: Any = getattr(os, name)

        def noted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            is_folder = name == "fsync" and Path(f"/proc/self/fd/{arguments[0]}").resolve().is_dir()
            steps.append(f"{name} {'of the folder' if is_folder else 'of the file'}")
            return real(*arguments)

        monkeypatch.setattr(os, name, noted)
    ask(blobs.write, BLOB, 0, b"data")
    steps.clear()
    ask(blobs.confirm, BLOB, 4)
    ask(blobs.finish, BLOB, 4)
    assert steps == [
        "fdatasync of the file",  # the bytes
        "fdatasync of the file",  # how many they are
        "fsync of the folder",
        "fsync of the file",
        "rename of the file",
        "fsync of the folder",
    ]


def test_files_are_for_their_owner_only_and_others_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    blobs = open_folder(tmp_path / "media")
    put(blobs, BLOB, b"x")
    (file,) = (tmp_path / "media").glob("*/*")
    assert (file.name, file.stat().st_mode & 0o777) == (str(BLOB), 0o600)
    (file.parent / "notes.txt").write_text("of the operator")
    (tmp_path / "media" / "README").write_text("likewise")
    assert ask(blobs.names, None, 10) == [BLOB]


def test_a_file_whose_head_was_lost_begins_again(tmp_path: Path) -> None:
    blobs = open_folder(tmp_path)
    ask(blobs.write, BLOB, 0, b"lost")
    ask(blobs.confirm, BLOB, 4)
    (file,) = tmp_path.glob("*/*.part")
    file.write_bytes(b"torn")
    assert ask(blobs.held, BLOB) == Held(0, is_whole=False)
    put(blobs, BLOB, b"again")
    assert ask(blobs.read, BLOB, 0, 9) == b"again"


def test_a_file_that_somebody_has_cut_is_not_called_whole(tmp_path: Path) -> None:
    blobs = open_folder(tmp_path)
    ask(blobs.write, BLOB, 0, b"data")
    assert ask(blobs.finish, BLOB, 5) == SHORT
    assert ask(blobs.read, BLOB, 0, 9) is None
