"""What an upload or a download may not take, and what is said then: before bytes are taken, and nothing is lost."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.port import BlobFailed
from nightmail.model.blobs import BlobId
from tests.api.media.media_rig import BYTES, DATA, TUS, ask, begin, metadata, patch, upload
from tests.server.rig import serving

PIECE, LARGE = 4_096, DATA * 40


def files_in(folder: Path) -> list[Path]:
    return [file for file in (folder / "media").rglob("*") if file.is_file()]


def test_a_quota_is_judged_before_a_byte_is_taken_and_that_of_backups_is_another(tmp_path: Path) -> None:
    with serving(tmp_path, limits__media_quota_bytes=1_000, limits__backup_quota_bytes=500) as town:
        ada = town.register("ada")
        begin(town, ada, 900)
        said = ask(town, "POST", "/v1/media", ada, b"x" * 101, {**BYTES, "Upload-Length": "101"})
        assert (said.status, said.code) == (413, "blob_quota")
        assert files_in(tmp_path) == []
        upload(town, ada, b"b" * 500, "backup")
        more = ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": "1", **metadata("backup")})
        assert (more.status, more.code) == (413, "blob_quota")
        assert upload(town, ada, b"m" * 100)


def test_uploads_that_are_open_are_counted_and_one_that_is_ended_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, limits__media_uploads=2) as town:
        ada, bob = town.register("ada"), town.register("bob")
        first, _second = begin(town, ada, 5), begin(town, ada, 5)
        third = ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": "5"})
        assert (third.status, third.code) == (429, "too_many_uploads")
        begin(town, bob, 5)
        assert ask(town, "DELETE", first, ada, headers=TUS).status == 204
        assert patch(town, ada, first, 0, b"x").status == 404
        begin(town, ada, 5)


def test_who_begins_or_fetches_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path, media__begun_per_minute=2, media__fetched_per_minute=2) as town:
        ada, bob = town.register("ada"), town.register("bob")
        path = upload(town, ada)
        begin(town, ada, 1)
        refused = [ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": "1"})]
        fetched = [ask(town, "GET", path, ada, headers={"Range": "bytes=0-1"}).status for _ in range(2)]
        refused.append(ask(town, "GET", path, ada))
        assert fetched == [206, 206]
        for said in refused:
            assert (said.status, said.code, int(said.headers["retry-after"]) > 0) == (429, "rate_limited", True)
        begin(town, bob, 1)


def test_an_upload_that_is_not_finished_in_time_is_gone_with_its_bytes(tmp_path: Path) -> None:
    with serving(tmp_path, limits__upload_ms=1) as town:
        ada = town.register("ada")
        said = ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": "5"})
        assert "upload-expires" in said.headers
        while ask(town, "HEAD", said.headers["location"], ada, headers=TUS).status != 404:
            pass
        assert patch(town, ada, said.headers["location"], 0, b"12345").status == 404
        assert files_in(tmp_path) == []


def test_a_disk_that_fills_in_the_middle_of_a_body_loses_nothing_that_was_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = FolderBlobs._write, [3]  # pyright: ignore[reportPrivateUsage]

    def filling(self: FolderBlobs, blob: BlobId, offset: int, data: bytes) -> BlobFailed | None:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.ENOSPC, "no space")
        return real(self, blob, offset, data)

    monkeypatch.setattr(FolderBlobs, "_write", filling)
    with serving(tmp_path, media__piece_bytes=PIECE) as town:
        ada = town.register("ada")
        path = begin(town, ada, len(LARGE))
        assert patch(town, ada, path, 0, LARGE[:PIECE]).status == 204
        full = patch(town, ada, path, PIECE, LARGE[PIECE:])
        assert (full.status, full.code, full.headers["retry-after"]) == (507, "disk_full", "2")
        assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == str(PIECE)
        assert patch(town, ada, path, PIECE, LARGE[PIECE:]).status == 204
        assert ask(town, "GET", path, ada).body == LARGE
        assert ask(town, "GET", "/v1/media", ada).status == 405
