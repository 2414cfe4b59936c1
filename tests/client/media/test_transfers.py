"""Uploads and downloads against a real node, over connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from nightmail.client.errors import HttpError, Refused, Unreachable
from nightmail.client.limits import ClientLimits
from nightmail.client.media.blob_http import BlobHttp, passes
from nightmail.client.media.transfers import PIECE_BYTES_MIN, Source, download, upload
from nightmail.client.media_errors import FileGone, OtherBlob
from tests.server.rig import Person, Town

DATA = bytes(range(251)) * 4_000
QUICK = ClientLimits(retry_ms_min=1, retry_ms_max=1)


def http_of(town: Town, who: Person, kind: type[BlobHttp] = BlobHttp) -> BlobHttp:
    return kind([f"http://127.0.0.1:{town.port}"], who.bearer, None, QUICK)


def source_of(data: bytes) -> Source:
    async def source(offset: int, most: int) -> bytes:
        return data[offset : offset + most]

    return source


def kept(http: BlobHttp, data: bytes = DATA, purpose: str = "media") -> str:
    blob = http.begin(len(data), purpose)
    asyncio.run(upload(http, blob, len(data), source_of(data), QUICK))
    return blob


def fetched(http: BlobHttp, blob: str, first: int = 0, size: int = len(DATA)) -> bytes:
    came = bytearray()
    asyncio.run(download(http, blob, first, size, came.extend, QUICK))
    return bytes(came)


class LostAnswers(BlobHttp):
    """Every second piece arrives, and its answer does not."""

    count = 0

    def append(self, blob: str, offset: int, piece: bytes | bytearray, checksum: str = "") -> int:
        done = super().append(blob, offset, piece, checksum)
        self.count += 1
        if self.count % 2:
            raise Unreachable("the answer was lost")
        return done


class ShortReads(BlobHttp):
    """Every connection breaks after a block."""

    def fetch(self, blob: str, first: int, size: int) -> Generator[bytes]:
        for block in super().fetch(blob, first, size):
            yield block[:100_000]
            raise Unreachable("the connection broke")


def test_an_upload_whose_answers_are_lost_goes_on_where_the_server_stands(town: Town) -> None:
    http = http_of(town, town.register("ada1"), LostAnswers)
    assert fetched(http, kept(http)) == DATA


def test_an_upload_that_was_given_up_goes_on_in_another_process(town: Town) -> None:
    http = http_of(town, town.register("ada2"))
    blob, asked = http.begin(len(DATA)), list[int]()

    async def fails(offset: int, most: int) -> bytes:
        if offset:
            raise Refused(403, "no")
        return DATA[:most]

    async def goes_on(offset: int, most: int) -> bytes:
        asked.append(offset)
        return DATA[offset : offset + most]

    with pytest.raises(Refused):
        asyncio.run(upload(http, blob, len(DATA), fails, QUICK))
    asyncio.run(upload(http, blob, len(DATA), goes_on, QUICK))
    assert asked[0] == PIECE_BYTES_MIN
    assert fetched(http, blob) == DATA


def test_progress_is_told_up_to_the_end(town: Town) -> None:
    http, told = http_of(town, town.register("ada3")), list[tuple[int, int]]()
    blob = http.begin(len(DATA))
    asyncio.run(upload(http, blob, len(DATA), source_of(DATA), QUICK, lambda done, total: told.append((done, total))))
    assert told[0] == (0, len(DATA))
    assert told[-1] == (len(DATA), len(DATA))
    assert told == sorted(told)


def test_a_download_goes_on_behind_what_came(town: Town) -> None:
    ada = town.register("ada4")
    blob = kept(http_of(town, ada))
    assert fetched(http_of(town, ada, ShortReads), blob) == DATA
    assert fetched(http_of(town, ada), blob, first=70_000) == DATA[70_000:]


def test_a_blob_of_another_size_is_refused_before_a_byte_is_taken(town: Town) -> None:
    http = http_of(town, town.register("ada5"))
    blob = kept(http)
    for size in (len(DATA) - 1, len(DATA) + 1):
        with pytest.raises(OtherBlob):
            fetched(http, blob, size=size)


def test_what_has_ended_is_gone_for_an_upload_and_for_a_download(town: Town) -> None:
    http = http_of(town, town.register("ada6"))
    blob = kept(http)
    http.remove(blob)
    with pytest.raises(FileGone):
        fetched(http, blob)
    with pytest.raises(FileGone):
        asyncio.run(upload(http, blob, len(DATA), source_of(DATA), QUICK))
    with pytest.raises(FileGone):
        http.verified(blob)


def test_a_refusal_that_does_not_pass_is_told_at_once(town: Town) -> None:
    http = http_of(town, town.register("ada7"))
    with pytest.raises(Refused) as refused:
        http.begin(1 << 50)
    assert refused.value.code == "blob_too_large"
    assert not passes(refused.value)
    blob = http.begin(100)
    with pytest.raises(Refused) as beyond:
        http.append(blob, 0, b"x" * 101)
    assert beyond.value.code == "too_large"


def test_without_a_server_it_is_given_up_for_now_and_not_for_good() -> None:
    http = BlobHttp(["http://127.0.0.1:9"], "Bearer none", None, QUICK)
    with pytest.raises(HttpError) as away:
        asyncio.run(upload(http, "x", 1, source_of(b"x"), QUICK))
    assert passes(away.value)


def test_a_cancelled_download_takes_nothing_more(town: Town) -> None:
    http, came = http_of(town, town.register("ada8")), list[bytes]()
    blob = kept(http)

    async def cancelled() -> None:
        loop, under_way = asyncio.get_running_loop(), asyncio.Event()

        def take(block: bytes) -> None:
            came.append(block)
            loop.call_soon_threadsafe(under_way.set)
            asyncio.run_coroutine_threadsafe(stopped.wait(), loop).result()

        stopped = asyncio.Event()
        task = asyncio.create_task(download(http, blob, 0, len(DATA), take, QUICK))
        await under_way.wait()
        task.cancel()
        await asyncio.sleep(0)
        stopped.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert len(came) == 1


def test_backups_are_listed_and_are_named_by_their_id(town: Town) -> None:
    http = http_of(town, town.register("ada9"))
    blob = kept(http, purpose="backup")
    assert [(each.id, each.size) for each in http.backups()] == [(blob, len(DATA))]
