"""Blobs over HTTP: uploads by tus, ranges, audiences, backups."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from pathlib import Path

import pytest

from nightmail.model.blobs import BlobId
from nightmail.model.effects import LookForBytes
from tests.api.media.media_rig import BYTES, DATA, TUS, address, ask, begin, metadata, patch, upload
from tests.server.rig import WAIT_S, Town, serving


def test_an_upload_goes_on_where_it_stopped_and_is_fetched_whole(town: Town) -> None:
    ada = town.register("ada1")
    path = begin(town, ada, len(DATA))
    first = patch(town, ada, path, 0, DATA[:1000])
    assert (first.status, first.headers["upload-offset"]) == (204, "1000")
    assert "upload-expires" in first.headers
    head = ask(town, "HEAD", path, ada, headers=TUS)
    shown = [head.headers[name] for name in ("upload-offset", "upload-length", "cache-control")]
    assert (head.status, shown) == (200, ["1000", str(len(DATA)), "no-store"])
    assert ask(town, "GET", path, ada).status == 404
    assert patch(town, ada, path, 1000, DATA[1000:]).headers["upload-offset"] == str(len(DATA))
    got = ask(town, "GET", path, ada)
    assert (got.status, got.body, got.headers["content-length"]) == (200, DATA, str(len(DATA)))
    assert got.headers["content-type"] == "application/octet-stream"


def test_an_upload_may_begin_with_its_bytes_and_be_empty(town: Town) -> None:
    ada = town.register("ada2")
    said = ask(town, "POST", "/v1/media", ada, b"hello", {**BYTES, "Upload-Length": "5"})
    assert (said.status, said.headers["upload-offset"]) == (201, "5")
    assert ask(town, "GET", said.headers["location"], ada).body == b"hello"
    empty = begin(town, ada, 0)
    assert (ask(town, "GET", empty, ada).status, ask(town, "GET", empty, ada).body) == (200, b"")


def test_what_uploads_can_do_is_said_to_anybody(town: Town) -> None:
    said = ask(town, "OPTIONS", "/v1/media", None)
    assert (said.status, said.headers["tus-version"]) == (204, "1.0.0")
    assert said.headers["tus-extension"] == "creation,creation-with-upload,checksum,termination,expiration"
    assert (said.headers["tus-max-size"], said.headers["tus-checksum-algorithm"]) == (str(1 << 30), "sha256,sha1")


@pytest.mark.parametrize("algorithm", ["sha256", "sha1"])
def test_a_chunk_with_another_checksum_does_not_count(town: Town, algorithm: str) -> None:
    ada = town.register(f"ada3{algorithm}")
    path = begin(town, ada, len(DATA))
    right = base64.b64encode(hashlib.new(algorithm, DATA[:500]).digest()).decode()
    wrong = patch(town, ada, path, 0, DATA[500:1000], Upload_Checksum=f"{algorithm} {right}")
    assert (wrong.status, wrong.code) == (460, "checksum_mismatch")
    assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == "0"
    assert patch(town, ada, path, 0, DATA[:500], Upload_Checksum=f"{algorithm} {right}").status == 204
    assert patch(town, ada, path, 500, DATA[500:]).status == 204
    assert ask(town, "GET", path, ada).body == DATA


def test_each_wrong_request_has_its_answer_and_changes_nothing(town: Town) -> None:
    ada, eve = town.register("ada4"), town.register("eve4")
    path = begin(town, ada, 100)
    patch(town, ada, path, 0, b"x" * 40)
    answers = {
        "another version": ask(town, "PATCH", path, ada, b"x", {**BYTES, "Tus-Resumable": "0.2.2"}),
        "no version": ask(town, "HEAD", path, ada),
        "a wrong offset": patch(town, ada, path, 39, b"x"),
        "no offset": ask(town, "PATCH", path, ada, b"x", BYTES),
        "a checksum by another way": patch(town, ada, path, 40, b"x", Upload_Checksum="md5 AAAA"),
        "a checksum that is none": patch(town, ada, path, 40, b"x", Upload_Checksum="sha256 %%"),
        "more than its length": patch(town, ada, path, 40, b"x" * 61),
        "JSON": patch(town, ada, path, 40, b"{}", Content_Type="application/json"),
        "another's upload": patch(town, eve, path, 40, b"x"),
        "another's end": ask(town, "DELETE", path, eve, headers=TUS),
        "a name with dots": ask(town, "HEAD", "/v1/media/..%2f..%2foperator.token", ada, headers=TUS),
        "a name that there is not": ask(town, "GET", path[:-1] + ("0" if path[-1] != "0" else "1"), ada),
        "no length": ask(town, "POST", "/v1/media", ada, headers=TUS),
        "too large": ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": str((1 << 30) + 1)}),
        "another purpose": ask(town, "POST", "/v1/media", ada, headers={**TUS, "Upload-Length": "1", **metadata("x")}),
        "nobody": ask(town, "GET", path, None),
    }  # fmt: skip
    assert {what: (said.status, said.code if said.body else "") for what, said in answers.items()} == {
        "another version": (412, "tus_version"),
        "no version": (412, ""),
        "a wrong offset": (409, "wrong_offset"),
        "no offset": (400, "malformed"),
        "a checksum by another way": (400, "malformed"),
        "a checksum that is none": (400, "malformed"),
        "more than its length": (413, "too_large"),
        "JSON": (415, "unsupported_media_type"),
        "another's upload": (404, "unknown_blob"),
        "another's end": (404, "unknown_blob"),
        "a name with dots": (404, ""),
        "a name that there is not": (404, "unknown_blob"),
        "no length": (400, "malformed"),
        "too large": (413, "blob_too_large"),
        "another purpose": (400, "malformed"),
        "nobody": (401, "unauthorized"),
    }
    assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == "40"


def test_a_finished_upload_is_not_changed(town: Town) -> None:
    ada = town.register("ada5")
    path = upload(town, ada)
    assert patch(town, ada, path, 0, b"x").status == 409
    assert patch(town, ada, path, len(DATA), b"x").status == 413
    assert patch(town, ada, path, len(DATA), b"").status == 204
    assert ask(town, "GET", path, ada).body == DATA


def test_ranges_are_fetched_and_one_outside_is_refused(town: Town) -> None:
    ada = town.register("ada6")
    path, size = upload(town, ada), len(DATA)
    for wanted, first, end in (
        ("0-99", 0, 100),
        ("1000-", 1000, size),
        ("-7", size - 7, size),
        (f"5-{size * 2}", 5, size),
    ):
        said = ask(town, "GET", path, ada, headers={"Range": f"bytes={wanted}"})
        assert (said.status, said.body) == (206, DATA[first:end])
        assert said.headers["content-range"] == f"bytes {first}-{end - 1}/{size}"
    outside = ask(town, "GET", path, ada, headers={"Range": f"bytes={size}-"})
    assert (outside.status, outside.code, outside.headers["content-range"]) == (416, "range_outside", f"bytes */{size}")
    for odd in ("bytes=0-1,4-5", "lines=1-2", "bytes=9-3", "bytes=-"):
        assert ask(town, "GET", path, ada, headers={"Range": odd}).status == 200
    tag = ask(town, "GET", path, ada).headers["etag"]
    assert ask(town, "GET", path, ada, headers={"If-None-Match": tag}).status == 304
    assert ask(town, "GET", path, ada, headers={"Range": "bytes=0-9", "If-Range": tag}).status == 206
    assert ask(town, "GET", path, ada, headers={"Range": "bytes=0-9", "If-Range": '"other"'}).status == 200


def test_only_named_accounts_fetch_a_blob_and_it_is_gone_after_the_last_has_it(town: Town) -> None:
    ada, bob, cleo, eve = (town.register(f"{name}7") for name in ("ada", "bob", "cleo", "eve"))
    path = upload(town, ada)
    assert [ask(town, "GET", path, who).status for who in (ada, bob, eve)] == [200, 404, 404]
    assert address(town, ada, path, bob).status == 204
    assert address(town, ada, path, bob, cleo, lifetime_seconds=3600).status == 204
    assert [ask(town, "GET", path, who).status for who in (ada, bob, cleo, eve)] == [200, 200, 200, 404]
    assert address(town, bob, path, eve).status == 404
    said = [ask(town, "POST", f"{path}/verified", who).status for who in (bob, eve, ada, bob)]
    assert said == [204, 404, 404, 204]
    assert ask(town, "GET", path, cleo).status == 200
    assert ask(town, "POST", f"{path}/verified", cleo).status == 204
    assert [ask(town, "GET", path, who).status for who in (ada, bob, cleo)] == [404, 404, 404]


def test_an_audience_is_checked(town: Town) -> None:
    ada, bob = town.register("ada8"), town.register("bob8")
    path, begun, backup = upload(town, ada), begin(town, ada, 5), upload(town, ada, b"b", "backup")
    assert (address(town, ada, begun, bob).code, address(town, ada, backup, bob).code) == (
        "blob_unfinished", "backup_private"
    )  # fmt: skip
    mixed = json.dumps({"devices": [[f"{bob.account:x}", f"{ada.device:x}"]]}).encode()
    wrong = ask(town, "PUT", f"{path}/audience", ada, mixed, {"Content-Type": "application/json"})
    assert (wrong.status, wrong.code) == (400, "malformed")
    assert address(town, ada, path, *[bob] * 257).code == "malformed"
    assert address(town, ada, path, bob, lifetime_seconds=-1).code == "malformed"


def test_backups_are_listed_and_end_when_they_are_deleted(town: Town) -> None:
    ada, bob = town.register("ada9"), town.register("bob9")
    path = upload(town, ada, b"sealed", "backup")
    (shown,) = town.get("/v1/backups", ada).json["backups"]
    assert (f"/v1/media/{shown['id']}", shown["size"]) == (path, 6)
    assert town.get("/v1/backups", bob).json == {"backups": []}
    assert ask(town, "GET", path, bob).status == 404
    assert ask(town, "DELETE", path, ada, headers=TUS).status == 204
    assert (town.get("/v1/backups", ada).json, ask(town, "GET", path, ada).status) == ({"backups": []}, 404)


def test_who_can_only_post_says_what_is_meant(town: Town) -> None:
    ada = town.register("ada10")
    path = begin(town, ada, 3)
    said = ask(town, "POST", path, ada, b"abc", {**BYTES, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"})
    assert (said.status, ask(town, "GET", path, ada).body) == (204, b"abc")
    assert ask(town, "POST", path, ada, headers={**TUS, "X-HTTP-Method-Override": "DELETE"}).status == 204
    assert ask(town, "POST", path, ada, headers=TUS).status == 400


def test_a_connection_that_breaks_leaves_what_had_arrived(town: Town) -> None:
    ada = town.register("ada11")
    path = begin(town, ada, 1_000_000)
    with socket.create_connection(("127.0.0.1", town.port), timeout=WAIT_S) as line:
        head = {**BYTES, "Authorization": ada.bearer, "Upload-Offset": "0", "Content-Length": "1000000", "Host": "x"}
        lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
        line.sendall(f"PATCH {path} HTTP/1.1\r\n{lines}\r\n".encode() + bytes(300_000))
        # The next request takes the upload over, whether or not the first one's end was noticed.
        while (offset := int(ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"])) == 0:
            pass
    assert 0 < offset <= 300_000
    while offset < 1_000_000:
        said = patch(town, ada, path, offset, bytes(1_000_000 - offset))
        assert said.status in (204, 409), said
        offset = int(ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"])
    assert ask(town, "GET", path, ada).body == bytes(1_000_000)


def test_bytes_lie_in_the_media_folder_and_go_with_the_blob(town: Town) -> None:
    ada = town.register("ada12")
    path = upload(town, ada)
    file = Path(town.node.config.data.folder) / "media" / path.split("/")[-1][:3] / path.split("/")[-1]
    assert file.read_bytes()[16:] == DATA
    ask(town, "DELETE", path, ada, headers=TUS)
    while file.exists():
        town.get("/healthz")


def test_bytes_that_belong_to_no_blob_are_swept(tmp_path: Path) -> None:
    stray = [
        tmp_path / "media" / "000" / f"{BlobId(n, bytes(16))}{end}" for n in range(1, 150) for end in ("", ".part")
    ]
    with serving(tmp_path) as town:
        kept = upload(town, town.register("ada"))
    stray[0].parent.mkdir(exist_ok=True)
    for file in stray:
        file.write_bytes(bytes(20))
    with serving(tmp_path) as town:
        while any(file.exists() for file in stray):
            town.get("/healthz")
        file = tmp_path / "media" / kept.split("/")[-1][:3] / kept.split("/")[-1]
        assert file.read_bytes()[16:] == DATA
        assert b"nightmail_blobs_swept_total 149.0" in town.get("/metrics", town.operator).body


def test_a_blob_whose_bytes_are_lost_is_no_more(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada = town.register("ada")
        lost, kept = upload(town, ada), upload(town, ada)
        names = [BlobId.parse(path.split("/")[-1]) for path in (lost, kept)]
        (tmp_path / "media" / str(names[0])[:3] / str(names[0])).unlink()
        assert town.node.media is not None
        for name in names:
            town.run(lambda name=name: town.node.media.keeper.on_bytes(LookForBytes(*name)))  # pyright: ignore[reportOptionalMemberAccess]
        while ask(town, "HEAD", lost, ada, headers=TUS).status != 404:
            pass
        assert ask(town, "GET", kept, ada).status == 200


def test_a_full_disk_is_said_and_the_upload_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with serving(tmp_path, media__reserve_bytes=1 << 52) as town:
        ada = town.register("ada")
        path = begin(town, ada, len(DATA))
        refused = patch(town, ada, path, 0, DATA)
        assert (refused.status, refused.code) == (507, "disk_full")
    with serving(tmp_path) as town:
        assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == "0"
        assert patch(town, ada, path, 0, DATA).status == 204
        assert ask(town, "GET", path, ada).body == DATA


def test_too_slow_a_piece_is_not_waited_for_and_what_came_counts(tmp_path: Path) -> None:
    with serving(tmp_path, media__piece_ms=200) as town:
        ada = town.register("ada")
        path = begin(town, ada, 1_000)
        with socket.create_connection(("127.0.0.1", town.port), timeout=WAIT_S) as line:
            head = {**BYTES, "Authorization": ada.bearer, "Upload-Offset": "0", "Content-Length": "1000", "Host": "x"}
            lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
            line.sendall(f"PATCH {path} HTTP/1.1\r\n{lines}\r\n".encode() + bytes(300))
            assert line.recv(100).startswith(b"HTTP/1.1 408")
        assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == "300"
