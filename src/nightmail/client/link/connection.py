"""One WebSocket: opened once, read until it ends, written without blocking the caller.

Knows:   the `websockets` library, and how each ending looks to the machine.
Never:   raises because of the network: `code` and `why` say what happened.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from nightmail.client.limits import ClientLimits
from nightmail.client.machine.machine import BROKEN
from nightmail.wire.items import SUBPROTOCOL

from .failures import failure_text

NO_SUBPROTOCOL = 1002
"""The other side does not speak this protocol."""

CLOSE_SECONDS = 2
"""How long closing may take; then the socket is dropped."""


class WebSocketConnection:
    def __init__(self, uri: str, tls: ssl.SSLContext | None, limits: ClientLimits) -> None:
        self._uri, self._limits = uri, limits
        # True: the CAs of this system.
        self._tls = (tls or True) if uri.startswith("wss:") else None
        self._socket: ClientConnection | None = None
        self._frames: deque[bytes] = deque()
        self._written = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self.code = BROKEN
        self.why = ""
        self.retry_ms = 0

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    async def open(self) -> None:
        try:
            self._socket = await connect(
                self._uri, subprotocols=[Subprotocol(SUBPROTOCOL)], compression=None, ssl=self._tls, proxy=None,
                open_timeout=self._limits.connect_ms / 1_000, ping_interval=None, close_timeout=CLOSE_SECONDS,
                max_size=self._limits.frame_bytes,
            )  # fmt: skip
        except InvalidStatus as error:
            # Refused before the handshake: too many connections at once, or not a Nightmail server.
            self.why = f"the server answered {error.response.status_code}"
            self.retry_ms = _seconds(error.response.headers.get("Retry-After", "")) * 1_000
        except (OSError, TimeoutError, WebSocketException) as error:
            self.why = failure_text(error)
        else:
            if self._socket.subprotocol != SUBPROTOCOL:
                self.code, self.why = NO_SUBPROTOCOL, f"the server does not speak {SUBPROTOCOL}"
                await self._socket.close()
                self._socket = None

    async def live(self, receive: Callable[[bytes], None]) -> None:
        """Read until the connection ends, however it ends. Writes go out meanwhile."""
        socket = self._socket
        assert socket is not None
        writer = asyncio.create_task(self._write_all(socket))
        try:
            async for frame in socket:
                if isinstance(frame, str):
                    self.why = "the server sent text"
                    break
                receive(frame)
        except ConnectionClosed:
            pass
        finally:
            writer.cancel()
            await asyncio.wait([writer])
            if not self._closing:
                await self._write_rest(socket)
                await socket.close()
            else:
                await asyncio.wait([self._closing])
            self.code = socket.close_code or BROKEN
            self._socket = None

    def write(self, frames: Iterable[bytes]) -> None:
        self._frames.extend(frames)
        if self._frames:
            self._written.set()

    def hang_up(self) -> None:
        """Close in bounded time, whatever the other side does. Not through the writer: it may be stuck."""
        if self._socket and not self._closing:
            self._closing = asyncio.create_task(self._socket.close())

    async def _write_all(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await self._written.wait()
                self._written.clear()
                while self._frames:
                    await socket.send(self._frames.popleft())

    async def _write_rest(self, socket: ClientConnection) -> None:
        """Write the last frames. If the server does not take them in time, the next connection sends them again."""
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._frames:
                    await socket.send(self._frames.popleft())


def _seconds(text: str) -> int:
    return min(int(text), 3_600) if text.isascii() and text.isdigit() else 0
