"""Uploads by an independent client of tus."""

from __future__ import annotations

import io

from tusclient.client import TusClient

from tests.api.media.media_rig import DATA, TUS, ask
from tests.server.rig import Person, Town

CHUNK = 1_000


def client_of(town: Town, who: Person) -> TusClient:
    return TusClient(f"http://127.0.0.1:{town.port}/v1/media", headers={"Authorization": who.bearer})


def path_of(url: str | None) -> str:
    assert url is not None
    return url[url.index("/v1/") :]


def test_it_uploads_in_chunks_with_checksums(town: Town) -> None:
    ada = town.register("tusada")
    uploader = client_of(town, ada).uploader(
        file_stream=io.BytesIO(DATA), chunk_size=CHUNK, upload_checksum=True, metadata={"purpose": "backup"}
    )
    uploader.upload()
    path = path_of(uploader.url)
    assert ask(town, "GET", path, ada).body == DATA
    (shown,) = town.get("/v1/backups", ada).json["backups"]
    assert path.endswith(shown["id"])


def test_it_goes_on_where_it_stopped(town: Town) -> None:
    bob = town.register("tusbob")
    first = client_of(town, bob).uploader(file_stream=io.BytesIO(DATA), chunk_size=CHUNK)
    first.upload(stop_at=3 * CHUNK)
    again = client_of(town, bob).uploader(file_stream=io.BytesIO(DATA), chunk_size=CHUNK, url=first.url)
    assert again.offset == 3 * CHUNK
    again.upload()
    path = path_of(first.url)
    assert ask(town, "GET", path, bob).body == DATA
    assert ask(town, "HEAD", path, bob, headers=TUS).headers["upload-offset"] == str(len(DATA))
