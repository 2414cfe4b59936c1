"""Asks for the bytes of blobs, and for what is known of them, and awaits the answers.

Knows:   nothing of its own.
Touches: the store of bytes; through the desk's client, the shards.
Never:   tells a peer why the store failed: that is for the operator.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from nightmail.api.desk_client import DeskClient
from nightmail.api.problems import refused
from nightmail.engine.ports import BlobFailed, BlobRecords, Blobs, Held
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.refusals import DiskFull, Unavailable, UnknownBlob

T = TypeVar("T")

log = logging.getLogger("nightmail.api")


class BlobClient:
    def __init__(self, desk: DeskClient, records: BlobRecords, blobs: Blobs) -> None:
        self._desk, self._records, self._blobs = desk, records, blobs

    async def seen(self, name: BlobId, device: int) -> BlobSeen:
        """As the device sees it. Raises a Problem if it may not."""

        def ask(then: Callable[[BlobSeen | None], None]) -> None:
            self._records.blob(name, device, then)

        seen = await self._desk.look(ask)
        if seen is None:
            raise refused(UnknownBlob())
        return seen

    async def backups(self, account: int) -> list[tuple[BlobId, BlobSeen]]:
        return list(await self._desk.look(lambda then: self._records.backups(account, then)))

    async def held(self, name: BlobId) -> Held:
        def ask(done: Callable[[Held | None | BlobFailed], None]) -> None:
            self._blobs.held(name, done)

        return await _ask(ask) or Held(0, is_whole=False)

    async def write(self, name: BlobId, offset: int, data: bytes) -> None:
        await _ask(lambda done: self._blobs.write(name, offset, data, done))

    async def confirm(self, name: BlobId, size: int) -> None:
        await _ask(lambda done: self._blobs.confirm(name, size, done))

    async def finish(self, name: BlobId, size: int) -> None:
        await _ask(lambda done: self._blobs.finish(name, size, done))

    async def read(self, name: BlobId, offset: int, limit: int) -> bytes:
        """Raises a Problem if the bytes are not there: somebody else has taken them."""

        def ask(done: Callable[[bytes | None | BlobFailed], None]) -> None:
            self._blobs.read(name, offset, limit, done)

        data = await _ask(ask)
        if data is None:
            raise refused(UnknownBlob())
        return data


async def _ask(ask: Callable[[Callable[[T | BlobFailed], None]], None]) -> T:
    future: asyncio.Future[T | BlobFailed] = asyncio.get_running_loop().create_future()

    def answered(found: T | BlobFailed) -> None:
        if not future.done():
            future.set_result(found)

    ask(answered)
    found = await future
    if isinstance(found, BlobFailed):
        log.warning("the bytes of a blob could not be reached", extra={"why": found.why})
        raise refused(DiskFull() if found.is_full else Unavailable())
    return found
