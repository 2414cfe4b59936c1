"""Every `Blobs`, held to the words of engine/blobs/port.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.port import Blobs, Held
from nightmail.model.blobs import BlobId
from tests.s3_engine import S3Engine, at_once, running_s3

ADA, BOB = 1 << 48 | 5, 7
BLOB = BlobId(ADA, bytes(range(16)))
OTHER = BlobId(BOB, b"\xff" * 16)

Open: TypeAlias = Callable[[], Blobs]
"""Opens the store again, as after a crash of its process."""


def _folder(path: Path) -> Blobs:
    return FolderBlobs(path, post=at_once, execute=at_once, reserve_bytes=0)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Engine]:
    with running_s3(tmp_path_factory.mktemp("engines")) as engine:
        yield engine


@pytest.fixture(params=["folder", "s3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "folder":
        return lambda: _folder(tmp_path / "blobs")
    engine: S3Engine = request.getfixturevalue("s3")
    engine.clear()
    return lambda: engine.blobs(tmp_path / "growing")


def ask(call: Callable[..., None], *arguments: object) -> Any:
    said: list[Any] = []
    call(*arguments, said.append)
    (answer,) = said
    return answer


def put(blobs: Blobs, blob: BlobId, data: bytes) -> None:
    assert ask(blobs.write, blob, 0, data) is None
    assert ask(blobs.finish, blob, len(data)) is None


def test_what_was_never_written_is_not_there(opened: Open) -> None:
    blobs = opened()
    assert ask(blobs.held, BLOB) is None
    assert ask(blobs.read, BLOB, 0, 10) is None
    assert ask(blobs.remove, BLOB) is None
    assert ask(blobs.names, None, 10) == []


def test_a_whole_blob_is_read_in_any_part(opened: Open) -> None:
    blobs = opened()
    put(blobs, BLOB, b"0123456789")
    assert ask(blobs.held, BLOB) == Held(10, is_whole=True)
    reads = [ask(blobs.read, BLOB, offset, limit) for offset, limit in ((0, 10), (3, 4), (8, 100), (10, 5))]
    assert reads == [b"0123456789", b"3456", b"89", b""]


def test_pieces_stand_behind_each_other_and_count_once_confirmed(opened: Open) -> None:
    blobs = opened()
    ask(blobs.write, BLOB, 0, b"abc")
    ask(blobs.write, BLOB, 3, b"def")
    assert ask(blobs.held, BLOB) in (None, Held(0, is_whole=False))
    assert ask(blobs.confirm, BLOB, 6) is None
    assert ask(blobs.held, BLOB) == Held(6, is_whole=False)
    assert ask(blobs.read, BLOB, 0, 6) is None
    ask(blobs.write, BLOB, 6, b"g")
    assert ask(blobs.finish, BLOB, 7) is None
    assert ask(blobs.read, BLOB, 0, 9) == b"abcdefg"


def test_after_a_crash_it_goes_on_from_what_was_confirmed(opened: Open) -> None:
    blobs = opened()
    ask(blobs.write, BLOB, 0, b"good")
    ask(blobs.confirm, BLOB, 4)
    ask(blobs.write, BLOB, 4, b"bad, and longer")
    blobs = opened()
    assert ask(blobs.held, BLOB) == Held(4, is_whole=False)
    ask(blobs.write, BLOB, 4, b" end")
    ask(blobs.finish, BLOB, 8)
    blobs = opened()
    assert (ask(blobs.held, BLOB), ask(blobs.read, BLOB, 0, 99)) == (Held(8, is_whole=True), b"good end")


def test_finishing_again_changes_nothing(opened: Open) -> None:
    blobs = opened()
    put(blobs, BLOB, b"whole")
    assert ask(blobs.finish, BLOB, 5) is None
    assert ask(opened().read, BLOB, 0, 9) == b"whole"


def test_a_blob_may_be_empty(opened: Open) -> None:
    blobs = opened()
    assert ask(blobs.finish, BLOB, 0) is None
    assert (ask(blobs.held, BLOB), ask(blobs.read, BLOB, 0, 9)) == (Held(0, is_whole=True), b"")


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_removed_is_gone_and_others_stay(opened: Open, whole: bool) -> None:
    blobs = opened()
    put(blobs, OTHER, b"other")
    ask(blobs.write, BLOB, 0, b"gone")
    ask(blobs.finish if whole else blobs.confirm, BLOB, 4)
    assert ask(blobs.remove, BLOB) is None
    blobs = opened()
    assert (ask(blobs.held, BLOB), ask(blobs.read, OTHER, 0, 9)) == (None, b"other")
    assert ask(blobs.names, None, 10) == [OTHER]


def test_names_are_listed_in_order_page_by_page_whole_or_not(opened: Open) -> None:
    blobs = opened()
    all_names = sorted((BlobId(owner, bytes([n]) * 16) for owner in (ADA, BOB, BOB + 2) for n in range(4)), key=str)
    for place, blob in enumerate(all_names):
        ask(blobs.write, blob, 0, b"x")
        ask(blobs.finish if place % 2 else blobs.confirm, blob, 1)
    listed: list[BlobId] = []
    while page := ask(blobs.names, listed[-1] if listed else None, 5):
        assert len(page) <= 5
        listed += page
    assert listed == all_names
