"""A whole node whose blobs are in a bucket of S3, also while the bucket is away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightmail.engine.ports import EngineError
from tests.api.media.media_rig import DATA, TUS, ask, begin, patch, upload
from tests.s3_engine import S3Engine, running_s3
from tests.server.rig import serving


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Engine]:
    with running_s3(tmp_path_factory.mktemp("engines")) as engine:
        yield engine


def settings(s3: S3Engine) -> dict[str, Any]:
    access = s3.access
    return {
        "media__s3_bucket": access.bucket, "media__s3_endpoint": access.endpoint, "media__s3_region": access.region,
        "media__s3_key_id": access.key_id, "media__s3_secret_key": access.secret_key,
    }  # fmt: skip


def test_a_blob_is_uploaded_fetched_in_ranges_and_removed(s3: S3Engine, tmp_path: Path) -> None:
    with serving(tmp_path, **settings(s3)) as town:
        ada = town.register("ada")
        path = begin(town, ada, len(DATA))
        assert patch(town, ada, path, 0, DATA[:4000]).status == 204
        assert patch(town, ada, path, 4000, DATA[4000:]).status == 204
        assert ask(town, "GET", path, ada).body == DATA
        assert ask(town, "GET", path, ada, headers={"Range": "bytes=100-199"}).body == DATA[100:200]
        empty = begin(town, ada, 0)
        assert (ask(town, "GET", empty, ada).status, ask(town, "GET", empty, ada).body) == (200, b"")
        assert [file for file in (tmp_path / "media").rglob("*") if file.is_file()] == []
        for each in (path, empty):
            assert ask(town, "DELETE", each, ada, headers=TUS).status == 204
        while any(True for page in s3.access.store().list() for _ in page):
            town.get("/healthz")


def test_while_the_bucket_is_away_peers_are_told_to_come_back_and_nothing_is_lost(s3: S3Engine, tmp_path: Path) -> None:
    with serving(tmp_path, **settings(s3)) as town:
        ada = town.register("ada")
        there = upload(town, ada)
        path, fresh = begin(town, ada, len(DATA)), begin(town, ada, 1)
        patch(town, ada, path, 0, DATA[:9])
        s3.away()
        try:
            assert patch(town, ada, path, 9, DATA[9:4000]).status == 204
            answers = [patch(town, ada, path, 4000, DATA[4000:]), ask(town, "GET", there, ada)]
            answers.append(patch(town, ada, fresh, 0, b"x"))
            answers.append(patch(town, ada, path, len(DATA), b""))
        finally:
            s3.back()
        for said in answers:
            assert (said.status, said.code, said.headers["retry-after"]) == (503, "unavailable", "2")
        # All bytes had arrived, so looking at the upload is what finishes it.
        assert ask(town, "HEAD", path, ada, headers=TUS).headers["upload-offset"] == str(len(DATA))
        assert [ask(town, "GET", each, ada).body for each in (there, path)] == [DATA, DATA]


def test_a_node_starts_and_serves_messages_without_its_bucket(s3: S3Engine, tmp_path: Path) -> None:
    given = settings(s3)
    s3.away()
    try:
        with serving(tmp_path, **given) as town:
            assert town.get("/readyz").status == 200
            path = begin(town, town.register("ada"), 5)
            assert path.startswith("/v1/media/")
    finally:
        s3.back()


def test_without_its_package_a_bucket_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "nightmail.engine.blobs.s3", raising=False)
    with (
        pytest.raises(EngineError, match=r"obstore is missing: install nightmail\[s3\]"),
        serving(tmp_path, media__s3_bucket="bucket"),
    ):
        pass
