"""A client that says exactly the bytes it is told to, from an address that it chooses.

Knows:   RFC 6455 and HTTP as far as an attack, or a calm pair, needs them.
Touches: one socket each.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
from base64 import urlsafe_b64encode
from typing import Any, NamedTuple

from nightmail.model.ids import account_of
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, VERSION, FromDevice, FromServer, Hello, Welcome

HOST = "127.0.0.1"
CONTINUATION, BINARY, CLOSE, PING = 0x0, 0x2, 0x8, 0x9
FIN, MASKED = 0x80, 0x80
HANDSHAKE = (
    f"GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
).encode()
WAIT_S = 20.0
"""Longer than any answer takes that still comes."""


class Refused(Exception):
    """The server did not let this connection or request in."""


class Person(NamedTuple):
    """A registered device, and what it proves itself with."""

    device: int
    token: bytes

    @property
    def account(self) -> int:
        return account_of(self.device)

    @property
    def bearer(self) -> str:
        return f"Bearer {self.device:x}.{urlsafe_b64encode(self.token).rstrip(b'=').decode()}"


def frame(payload: bytes, first: int = FIN | BINARY) -> bytes:
    """Masked with zeros: the payload stays as it is."""
    size = len(payload)
    if size < 126:
        header = bytes((first, MASKED | size))
    elif size < 65_536:
        header = struct.pack(">BBH", first, MASKED | 126, size)
    else:
        header = struct.pack(">BBQ", first, MASKED | 127, size)
    return header + bytes(4) + payload


class Connection:
    """Use it with `async with`."""

    def __init__(self, port: int, address: str = HOST) -> None:
        self._port, self._address = port, address
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection(HOST, self._port, local_addr=(self._address, 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def items(self, *items: FromDevice) -> None:
        await self.say(frame(encode(items)))

    async def upgrade(self) -> None:
        """Raises Refused."""
        await self.say(HANDSHAKE)
        if not (await self._head()).startswith(b"HTTP/1.1 101 "):
            raise Refused

    async def greet(self, who: Person) -> None:
        """Returns with the `Welcome`. Raises Refused."""
        await self.upgrade()
        await self.items(Hello(VERSION, who.device, who.token, 0, 0, 0))
        if not any(isinstance(item, Welcome) for item in await self.hear()):
            raise Refused

    async def hear(self) -> list[FromServer]:
        """The next frame of items. Raises Refused at a close frame, or at the end."""
        try:
            while True:
                first, size = await self.reader.readexactly(2)
                if size >= 126:
                    wide = 2 if size == 126 else 8
                    size = int.from_bytes(await self.reader.readexactly(wide), "big")
                payload = await self.reader.readexactly(size)
                if first == FIN | BINARY:
                    return decode_from_server(payload)
                if first == FIN | CLOSE:
                    raise Refused
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Refused from None

    async def _head(self) -> bytes:
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Refused from None

    async def ask(self, method: str, path: str, body: Any = None, bearer: str = "") -> tuple[int, Any]:
        """One HTTP request: status and JSON."""
        data = b"" if body is None else json.dumps(body).encode()
        auth = f"Authorization: {bearer}\r\n" if bearer else ""
        await self.say(
            f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\n{auth}Content-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        head = await self._head()
        answer = await self.reader.read()
        status = int(head.split(b" ")[1])
        return status, json.loads(answer) if answer.startswith(b"{") else None


async def register(port: int, handle: str, address: str = HOST) -> Person:
    """Raises Refused."""
    token = hashlib.sha256(handle.encode()).digest()
    new = {
        "handle": handle, "label": "phone", "platform": "cli", "registration": 7,
        "token_digest": hashlib.sha256(token).hexdigest(),
    }  # fmt: skip
    async with Connection(port, address) as connection:
        status, answer = await connection.ask("POST", "/v1/accounts", new)
    if status != 201:
        raise Refused
    return Person(int(answer["device"], 16), token)
