"""The pieces of one transfer: read from a request, or sent as a response, each within its time.

Knows:   which uploads are under way, and how many streams there are.
Touches: one request's body, or one response.
Never:   holds more than a piece in memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nightmail.api.access import BUSY_MS
from nightmail.api.problems import Problem, problem, refused
from nightmail.model.blobs import BlobId
from nightmail.model.refusals import RateLimited

from .limits import MediaLimits

PAUSE_S = 0.02
PAUSES = 50
"""Under pressure a transfer waits before its next piece, but not for ever."""


class Transfers:
    """How many transfers are under way, in all and of each account."""

    def __init__(self, limits: MediaLimits, pressed: Callable[[], bool]) -> None:
        self._limits, self._pressed = limits, pressed
        self._of_account: Counter[int] = Counter()
        self.count = 0

    @contextmanager
    def one(self, account: int) -> Generator[None]:
        """Raises a Problem if there are too many."""
        self.take(account)
        try:
            yield
        finally:
            self.leave(account)

    def take(self, account: int) -> None:
        """Raises a Problem if there are too many. Otherwise call `leave` when the transfer ends."""
        if self._of_account[account] >= self._limits.account_streams:
            raise refused(RateLimited(BUSY_MS))
        if self.count >= self._limits.streams:
            raise problem("not_ready", "too many transfers are under way", retry_s=2)
        self.count += 1
        self._of_account[account] += 1

    def leave(self, account: int) -> None:
        self.count -= 1
        self._of_account[account] -= 1
        if not self._of_account[account]:
            del self._of_account[account]

    async def wait(self) -> None:
        """Live messages come first."""
        for _ in range(PAUSES):
            if not self._pressed():
                return
            await asyncio.sleep(PAUSE_S)


# --- in -----------------------------------------------------------------------------------------


class BodyEnd(Enum):
    """Why no more comes."""

    WHOLE = "the body has ended"
    SLOW = "a piece did not arrive in time, or another request goes on with this upload"
    GONE = "the peer has hung up"


class UploadTurn:
    """An upload that one request works at. The next request for it takes it over: the first one's peer is most often
    gone without a word."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._timeout: asyncio.Timeout | None = None
        self._displaced = False

    def displace(self) -> None:
        self._displaced = True
        if self._timeout:
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def next_piece(self, stream: AsyncIterator[bytes], limits: MediaLimits) -> tuple[bytes, BodyEnd | None]:
        """What comes next, and whether it was the last."""
        piece = bytearray()
        try:
            async with asyncio.timeout(0 if self._displaced else limits.piece_ms / 1000) as self._timeout:
                while len(piece) < limits.piece_bytes:
                    piece += await anext(stream)
        except StopAsyncIteration:
            return bytes(piece), BodyEnd.WHOLE
        except TimeoutError:
            return bytes(piece), BodyEnd.SLOW
        except ClientDisconnect:
            return bytes(piece), BodyEnd.GONE
        finally:
            self._timeout = None
        return bytes(piece), None


class UploadTurns:
    def __init__(self) -> None:
        self._under_way: dict[BlobId, UploadTurn] = {}

    @asynccontextmanager
    async def alone(self, name: BlobId) -> AsyncGenerator[UploadTurn]:
        while other := self._under_way.get(name):
            other.displace()
            await other.ended.wait()
        turn = self._under_way[name] = UploadTurn()
        try:
            yield turn
        finally:
            del self._under_way[name]
            turn.ended.set()


# --- out ----------------------------------------------------------------------------------------


class BlobResponse(Response):
    """Sends a range of a blob, a piece at a time, as fast as the peer reads."""

    def __init__(
        self, request: Request, status: int, headers: dict[str, str], first: bytes, size: int,
        read: Callable[[int], Awaitable[bytes]], leave: Callable[[], None], wait: Callable[[], Awaitable[None]],
        piece_s: float,
    ) -> None:  # fmt: skip
        """`read(sent)`: the piece behind the first `sent` bytes. `leave`: gives back the place that the caller took."""
        super().__init__(None, status, {**headers, "Content-Length": str(size)}, "application/octet-stream")
        self._request, self._first, self._size, self._read = request, first, size, read
        self._leave, self._wait, self._piece_s = leave, wait, piece_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            piece, sent = self._first, 0
            while True:
                sent += len(piece)
                async with asyncio.timeout(self._piece_s):
                    await send({"type": "http.response.body", "body": piece, "more_body": sent < self._size})
                if sent >= self._size or await self._request.is_disconnected():
                    return
                await self._wait()
                if not (piece := await self._read(sent)):
                    return  # It ended meanwhile. The peer sees that it has not got all, and asks again.
        except (TimeoutError, Problem):
            return  # Likewise: nothing can be said any more once a response has begun.
        finally:
            self._leave()
