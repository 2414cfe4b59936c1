from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nightmail.engine.blobs import s3 as module
from nightmail.engine.blobs.port import BlobFailed, Held
from nightmail.engine.blobs.s3 import S3Access
from nightmail.model.blobs import BlobId
from tests.conformance.test_blobs import ask, put
from tests.s3_engine import S3Engine, running_s3

BLOB = BlobId(1 << 48 | 5, bytes(range(16)))
AWAY = BlobFailed("S3 cannot be reached, or does not serve (GenericError)")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Engine]:
    with running_s3(tmp_path_factory.mktemp("engines")) as engine:
        yield engine


@pytest.fixture
def s3(running: S3Engine) -> S3Engine:
    running.clear()
    return running


def test_a_large_blob_goes_to_the_bucket_in_parts_and_leaves_the_folder(s3: S3Engine, tmp_path: Path) -> None:
    blobs, piece = s3.blobs(tmp_path), bytes(range(256)) * 4096
    size = 20 * len(piece) + 7
    assert size > 2 * module.PART_BYTES
    for number in range(20):
        ask(blobs.write, BLOB, number * len(piece), piece)
    ask(blobs.write, BLOB, 20 * len(piece), b"the end")
    assert ask(blobs.finish, BLOB, size) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert ask(blobs.held, BLOB) == Held(size, is_whole=True)
    assert ask(blobs.read, BLOB, 10 * len(piece) - 3, 6) == piece[-3:] + piece[:3]
    assert ask(blobs.read, BLOB, size - 7, 99) == b"the end"


def test_while_s3_is_away_uploads_grow_and_none_becomes_whole_and_later_they_do(s3: S3Engine, tmp_path: Path) -> None:
    blobs, other = s3.blobs(tmp_path), BlobId(7, b"o" * 16)
    put(blobs, other, b"here")
    s3.away()
    try:
        assert ask(blobs.write, BLOB, 0, b"waits") is None
        assert ask(blobs.confirm, BLOB, 5) is None
        assert ask(blobs.held, BLOB) == Held(5, is_whole=False)
        assert ask(blobs.finish, BLOB, 5) == AWAY
        asked = [ask(blobs.read, other, 0, 9), ask(blobs.held, other), ask(blobs.names, None, 9)]
        assert asked == [AWAY] * 3
    finally:
        s3.back()
    assert ask(blobs.held, BLOB) == Held(5, is_whole=False)
    assert ask(blobs.finish, BLOB, 5) is None
    assert (ask(blobs.read, BLOB, 0, 9), ask(blobs.read, other, 0, 9)) == (b"waits", b"here")


def test_after_a_crash_behind_the_last_byte_finishing_again_is_all_that_is_needed(
    s3: S3Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = s3.blobs(tmp_path)
    for is_put in (False, True):

        def crash(*_: Any, is_put: bool = is_put, real: Any = blobs.__class__._put) -> BlobFailed:  # pyright: ignore[reportPrivateUsage]
            if is_put:
                real(*_)
            return BlobFailed("dead")

        ask(blobs.write, BLOB, 0, b"all of it")
        with monkeypatch.context() as patched:
            patched.setattr(module.S3Blobs, "_put", crash)
            assert ask(blobs.finish, BLOB, 9) == BlobFailed("dead")
        blobs = s3.blobs(tmp_path)
        assert ask(blobs.held, BLOB) == Held(9, is_whole=False)
        assert ask(blobs.finish, BLOB, 9) is None
        assert ask(blobs.held, BLOB) == Held(9, is_whole=True)
        ask(blobs.remove, BLOB)


def test_a_bucket_that_kept_something_else_is_not_believed(s3: S3Engine, tmp_path: Path) -> None:
    blobs = s3.blobs(tmp_path)
    s3.access.store().put(str(BLOB), b"shorter")
    ask(blobs.write, BLOB, 0, b"the right bytes")
    assert ask(blobs.finish, BLOB, 15) == BlobFailed("S3 has not kept what was put")
    assert ask(blobs.held, BLOB) == Held(15, is_whole=False)


def test_objects_of_others_are_left_alone(s3: S3Engine, tmp_path: Path) -> None:
    blobs = s3.blobs(tmp_path)
    s3.access.store().put("notes.txt", b"of the operator")
    put(blobs, BLOB, b"x")
    assert ask(blobs.names, None, 1) == [BLOB]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"secret_key": "not the secret"}, "S3 does not accept the credentials, or they may not do this"),
        ({"key_id": "nobody"}, "S3 does not accept the credentials, or they may not do this"),
        ({"bucket": "elsewhere"}, "S3 has no such bucket"),
    ],
)
def test_what_is_wrong_is_said_without_a_name_or_a_key(
    s3: S3Engine, tmp_path: Path, change: dict[str, str], why: str
) -> None:
    blobs = s3.blobs(tmp_path, replace(s3.access, **change))
    ask(blobs.write, BLOB, 0, b"x")
    assert ask(blobs.finish, BLOB, 1) == BlobFailed(why)
    assert ask(blobs.held, BLOB) == Held(1, is_whole=False)


def test_credentials_are_never_shown() -> None:
    access = S3Access("bucket", secret_key="secret")
    assert repr(access) == "<the bucket 'bucket'>"
    assert str(access) == repr(access)
