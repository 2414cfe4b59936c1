"""The load process's side of its pipes, and how it connects."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

import msgspec

from .link import HOST
from .load_messages import Seen, Window

CONNECT_S = 60.0


class Pipes:
    """Lines in, lines out."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    @classmethod
    async def open(cls) -> Pipes:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return cls(reader)

    async def line(self) -> bytes:
        """b"" at the end of the input."""
        return await self._reader.readline()

    async def window(self) -> Window | None:
        line = await self.line()
        return msgspec.json.decode(line, type=Window) if line else None

    def say(self, seen: Seen) -> None:
        sys.stdout.write(msgspec.json.encode(seen).decode() + "\n")
        sys.stdout.flush()


async def connect(protocols: Sequence[asyncio.Protocol], port: int, at_once: int) -> None:
    """All of them; `at_once` at a time, 0: no limit."""
    gate = asyncio.Semaphore(at_once or len(protocols) + 1)

    async def one(protocol: asyncio.Protocol) -> None:
        async with gate:
            await connect_one(protocol, port)

    await asyncio.gather(*map(one, protocols))


async def connect_one(protocol: asyncio.Protocol, port: int) -> None:
    while True:
        try:
            await asyncio.get_running_loop().create_connection(lambda: protocol, HOST, port)
        except (ConnectionResetError, TimeoutError):
            # The listener's queue was full: as any client, try again.
            await asyncio.sleep(0.5)
        else:
            return


async def until(so: Callable[[], bool], most_s: float) -> bool:
    """Poll a condition. True if it became true in time."""
    deadline = asyncio.get_running_loop().time() + most_s
    while not so():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
