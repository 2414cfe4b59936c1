"""The gateway behind a real port of this machine, and somebody who speaks to it in bytes.

Time is still the test's: `town.wait` turns the wheel.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from nightmail.gateway.door import door
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.requests import HttpPlaces, Requests
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, FromServer, Hello
from tests.gateway.rig import TABLET, Town, token_of

WAIT_S = 120
"""No test waits this long unless something hangs."""
BINARY, TEXT, CONTINUATION, CLOSE, PING, PONG = 0x2, 0x1, 0x0, 0x8, 0x9, 0xA

HANDSHAKE = (
    f"GET {PATH} HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
).encode()
"""With the key of RFC 6455, 1.3."""


def masked(
    payload: bytes, opcode: int = BINARY, *, fin: bool = True, reserved: int = 0, mask: bytes = b"\1\2\3\4"
) -> bytes:
    """A WebSocket frame as a client sends it."""
    size = len(payload)
    first = (0x80 if fin else 0) | reserved | opcode
    if size < 126:
        header = bytes((first, 0x80 | size))
    elif size < 65_536:
        header = struct.pack(">BBH", first, 0x80 | 126, size)
    else:
        header = struct.pack(">BBQ", first, 0x80 | 127, size)
    return header + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def hello(device: int = TABLET) -> bytes:
    return encode([Hello(1, device, token_of(device), 0, 0, 0)])


class Ended(NamedTuple):
    """How the server ended a connection."""

    code: int
    reason: str


class Raw:
    """A client that says exactly the bytes it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> tuple[str, dict[str, str]]:
        """Status line and headers of a response."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.partition(": ") for line in lines[1:] if line)
        return lines[0], {name.lower(): value for name, _, value in pairs}

    async def upgrade(self) -> None:
        await self.say(HANDSHAKE)
        status, headers = await self.head()
        assert status == "HTTP/1.1 101 Switching Protocols"
        assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    async def greet(self, device: int = TABLET) -> None:
        """Shake hands, say hello, and hear Welcome and Drained."""
        await self.upgrade()
        await self.say(masked(hello(device)))
        assert [type(item).__name__ for item in await self.items()] == ["Welcome", "Drained"]

    async def frame(self) -> tuple[int, bytes]:
        first, size = await self.reader.readexactly(2)
        assert first & 0x70 == 0, "nothing is compressed"
        assert size < 128, "a server masks nothing"
        if size >= 126:
            wide = 2 if size == 126 else 8
            size = int.from_bytes(await self.reader.readexactly(wide), "big")
        return first, await self.reader.readexactly(size)

    async def items(self) -> list[FromServer]:
        first, payload = await self.frame()
        assert first == 0x80 | BINARY
        return decode_from_server(payload)

    async def end(self) -> Ended:
        """Skip what still comes; then the close frame, behind which nothing follows."""
        while (got := await self.frame())[0] != 0x80 | CLOSE:
            pass
        assert await self.reader.read() == b""
        return Ended(int.from_bytes(got[1][:2], "big"), got[1][2:].decode())

    def hang_up(self) -> None:
        self.writer.transport.abort()


class Quay(Town):
    """A town whose turns are those of the running event loop."""

    port: int
    client_tls: ssl.SSLContext | None = None

    def __init__(self, limits: GatewayLimits | None = None) -> None:
        super().__init__(limits)
        self.raws: list[Raw] = []
        self.http: set[object] = set()
        """HTTP connections."""

    def _come_soon(self) -> None:
        if not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self.turn_once)

    async def raw(self) -> Raw:
        raw = Raw(*await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client_tls))
        self.raws.append(raw)
        return raw

    async def leave(self) -> None:
        """Everybody hangs up, and the event loop sees it."""
        for raw in self.raws:
            raw.hang_up()
        for _ in range(5):
            await asyncio.sleep(0)

    async def until_heads_began(self) -> None:
        """Let the event loop read what was written: until each HTTP connection is inside the head of a request."""
        await self.until(lambda: all(each._begun is not None for each in self.http if isinstance(each, Requests)))

    async def until(self, so: Callable[[], bool]) -> None:
        """Let the event loop go on until it is so."""
        while not so():  # noqa: ASYNC110 (there is nothing to be told by)
            await asyncio.sleep(0)


async def _app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
    """Says which path was asked for."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(scope["path"]))]}
    )
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def at_the_quay(
    story: Callable[[Quay], Awaitable[None]],
    limits: GatewayLimits | None = None,
    *,
    tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
    proxies: str = "",
    http_places: int = 100,
) -> None:
    """Run a story against a real port; Ada and Ben have registered."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        quay = Quay(limits)
        quay.register("ada", "ben")
        config = Config(_app, lifespan="off", log_config=None, access_log=False, ws="none")  # type: ignore[arg-type]
        config.load()
        state = ServerState()
        quay.http = state.connections  # type: ignore[assignment]
        doors = door(quay.gateway, Proxies(proxies), HttpPlaces(http_places))
        server = await loop.create_server(
            doors(config, state, {}, loop), "127.0.0.1", 0, backlog=2_048, ssl=tls[0] if tls else None
        )
        quay.port = server.sockets[0].getsockname()[1]
        quay.client_tls = tls[1] if tls else None
        try:
            async with asyncio.timeout(WAIT_S):
                await story(quay)
        finally:
            server.close()
            await quay.leave()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
