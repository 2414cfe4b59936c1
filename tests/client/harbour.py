"""The real heart behind a real WebSocket server on the loopback: what the asyncio face is tested against."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from nightmail.client import Client
from nightmail.client.limits import ClientLimits
from nightmail.client.profile.profile import Profile
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import decode_hello, encode
from nightmail.wire.items import SUBPROTOCOL, Goodbye
from tests.client.town import Session, Town

QUICK = ClientLimits(backoff_ms_min=1, backoff_ms_max=2)
"""Nobody in a test waits for a server to recover."""


class Harbour:
    """A server; every connection is a `Session` of the town."""

    def __init__(self) -> None:
        self.town = Town()
        self.server: Server | None = None
        self.connections: list[tuple[ServerConnection, Session]] = []
        self.greeted = 0

    @property
    def address(self) -> str:
        assert self.server is not None
        return f"ws://127.0.0.1:{next(iter(self.server.sockets)).getsockname()[1]}"

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        assert socket.request.path == "/v1/connect"
        with contextlib.suppress(ConnectionClosed):
            hello = await socket.recv()
            assert isinstance(hello, bytes)
            session = Session(self.town, decode_hello(hello))
            self.greeted += 1
            self.connections.append((socket, session))
            try:
                await self._send_all()
                async for frame in socket:
                    assert isinstance(frame, bytes)
                    self.town.now += 1
                    session.take(frame)
                    await self._send_all()
            finally:
                session.close()
                self.connections.remove((socket, session))

    async def _send_all(self) -> None:
        """What one device said may be news for the others."""
        for socket, session in list(self.connections):
            for frame in session.frames():
                with contextlib.suppress(ConnectionClosed):
                    await socket.send(frame)

    async def drop(self) -> None:
        """Cut every wire, without a word."""
        for socket, _ in list(self.connections):
            socket.transport.abort()
            await socket.wait_closed()

    async def dismiss(self, code: CloseCode, retry_ms: int = 0) -> None:
        """Say goodbye, and close."""
        for socket, _ in list(self.connections):
            await socket.send(encode([Goodbye(code, SENTENCES[code], retry_ms)]))
            await socket.close(code, SENTENCES[code])

    def profile(self, folder: Path, handle: str) -> Path:
        """A profile of somebody who has joined."""
        device = self.town.join(handle)
        profile = Profile(folder / handle)
        profile.store.put_identity(device.me)
        profile.store.commit()
        profile.close()
        return folder / handle

    def client(self, folder: Path, handle: str, *servers: str, limits: ClientLimits = QUICK) -> Client:
        return Client(self.profile(folder, handle), servers or (self.address,), limits=limits)


@contextlib.asynccontextmanager
async def harbour(tls: ssl.SSLContext | None = None) -> AsyncIterator[Harbour]:
    place = Harbour()
    protocols = [Subprotocol(SUBPROTOCOL)]
    async with serve(place._serve, "127.0.0.1", 0, subprotocols=protocols, compression=None, ssl=tls) as server:
        place.server = server
        async with asyncio.timeout(120):
            yield place
