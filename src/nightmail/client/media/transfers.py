"""Whole uploads and downloads: they go on where they stopped, however often the connection breaks.

Knows:   how large a piece may be on this network, and when to give up for now.
Touches: the server, through `BlobHttp` on threads.
Never:   believes its own offset after a break: the server says what is durable there.

Sending and receiving wait for the network and for the server's disk; reading, sealing and verifying do not. So the
next piece is made while one is sent, and a block is taken while the next one comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from random import Random, SystemRandom
from threading import Event
from typing import NamedTuple, TypeAlias

from nightmail.client.errors import HttpError
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.retry import retry_ms
from nightmail.client.media_errors import OtherBlob
from nightmail.client.threads import in_thread

from .blob_http import BlobHttp, checksum_of, passes

PIECE_BYTES_MIN = 131_072
PIECE_BYTES_MAX = 2 * 1024 * 1024
BLOCKS_AHEAD = 3
"""Blocks that have come and are not taken yet."""
TRIES = 4
"""Attempts without progress, before a transfer is given up for now."""

Report: TypeAlias = Callable[[int, int], None]
"""Gets how many bytes of how many are there. Called on the event loop's thread."""
Source: TypeAlias = Callable[[int, int], Awaitable[bytes | bytearray]]
"""The bytes at an offset: some, and not more than asked for. The same bytes whenever they are asked for."""


def no_report(_done: int, _total: int) -> None: ...


class Patience:
    """Waits longer after each failure, and not for ever."""

    def __init__(self, limits: ClientLimits, chance: Random | None = None) -> None:
        self._limits, self._chance = limits, chance or SystemRandom()
        self._failures = 0

    def progressed(self) -> None:
        self._failures = 0

    async def endure(self, error: HttpError) -> None:
        """Raises the error if it does not pass, or has come too often."""
        self._failures += 1
        if not passes(error) or self._failures >= TRIES:
            raise error
        await asyncio.sleep(retry_ms(self._failures, self._limits, self._chance) / 1_000)


class _Piece(NamedTuple):
    data: bytes | bytearray
    checksum: str


async def upload(
    http: BlobHttp, blob: str, size: int, source: Source, limits: ClientLimits, report: Report = no_report
) -> None:
    """Send what the server lacks of a blob that was begun. When this returns, the server has all of it, durably.

    Raises FileGone if the upload has ended, HttpError; it is safe to call it again then.
    """
    patience, piece_bytes = Patience(limits), PIECE_BYTES_MIN

    async def made(offset: int) -> _Piece:
        data = await source(offset, piece_bytes)
        return _Piece(data, await in_thread(lambda: checksum_of(data)))

    while True:
        making: asyncio.Task[_Piece] | None = None
        try:
            seen = await in_thread(lambda: http.look(blob))
            if seen.size != size or seen.offset > size:
                raise OtherBlob("the upload has another size")
            offset = seen.offset
            report(offset, size)
            while offset < size:
                piece, at = await (making or made(offset)), offset
                offset += len(piece.data)
                making = asyncio.create_task(made(offset)) if offset < size else None
                if await in_thread(lambda: http.append(blob, at, piece.data, piece.checksum)) != offset:  # noqa: B023  # awaited at once
                    raise OtherBlob("the server counts other bytes than it was sent")
                patience.progressed()
                piece_bytes = min(2 * piece_bytes, PIECE_BYTES_MAX)
                report(offset, size)
            return
        except HttpError as error:
            # A network on which a large piece breaks may carry a small one.
            piece_bytes = max(piece_bytes // 4, PIECE_BYTES_MIN)
            await patience.endure(error)
        finally:
            if making is not None:
                await _ended(making)


async def _ended(making: asyncio.Task[_Piece]) -> None:
    """Nobody waits for it any more; what it raised is of no interest."""
    making.cancel()
    await asyncio.wait([making])
    if not making.cancelled():
        making.exception()


async def download(
    http: BlobHttp, blob: str, first: int, size: int, take: Callable[[bytes], None], limits: ClientLimits,
    report: Report = no_report,
) -> None:  # fmt: skip
    """Fetch a blob of this size from an offset on. `take` gets every block once, in order, on a thread; what it raises
    ends the download.

    Raises FileGone, OtherBlob, HttpError; what was taken is right, and a later call may go on behind it.
    """
    patience, loop = Patience(limits), asyncio.get_running_loop()
    came, ended = first, Event()

    def take_next(block: bytes) -> None:
        nonlocal came
        if ended.is_set():
            return
        try:
            take(block)
        except BaseException:
            ended.set()
            raise
        came += len(block)
        loop.call_soon_threadsafe(report, came, size)

    def run() -> None:
        taking = deque[Future[None]]()
        with ThreadPoolExecutor(1, "nightmail taker") as taker:
            try:
                with closing(http.fetch(blob, came, size)) as blocks:
                    for block in blocks:
                        if len(taking) > BLOCKS_AHEAD:
                            taking.popleft().result()
                        if ended.is_set():
                            return
                        taking.append(taker.submit(take_next, block))
            finally:
                # Also if the connection broke: what came before is taken, and counts.
                for taken in taking:
                    taken.result()

    while came < size:
        before = came
        try:
            await in_thread(run, ended.set)
        except HttpError as error:
            if came > before:
                patience.progressed()
            await patience.endure(error)
