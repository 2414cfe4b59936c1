"""What every attack has: a port, a victim, addresses to come from, and a count of refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .connection import Connection, Person, Refused, register

ADDRESSES = ("127.0.0.66", "127.0.0.67")
RATE_BYTES = 2_500_000
PIECE_S = 0.01
MANY = 1_000


class Attack:
    def __init__(self, port: int, victim: int) -> None:
        self.port, self.victim = port, victim
        self.refused = 0

    async def again(self, once: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again, whatever the server says to it."""
        while True:
            try:
                await once()
            except (Refused, OSError):
                self.refused += 1
                await asyncio.sleep(0.005)

    async def crowd(self, count: int, one: Callable[[int], Awaitable[None]]) -> None:
        """So many of them at once, from two addresses."""

        async def member(number: int) -> None:
            await self.again(lambda: one(number))

        await asyncio.gather(*(member(number) for number in range(count)))

    async def person(self, name: str, address: str = ADDRESSES[0]) -> Person:
        """An account of the attackers', as soon as their address may register one."""
        while True:
            try:
                return await register(self.port, f"hostile-{name}", address)
            except (Refused, OSError):
                self.refused += 1
                await asyncio.sleep(PIECE_S)

    async def flood(self, connection: Connection, piece: bytes) -> None:
        """Repeat a frame at the rate, until the connection ends."""
        times = max(1, int(RATE_BYTES * PIECE_S) // len(piece))
        ended = asyncio.create_task(connection.reader.read())
        try:
            while not ended.done():
                await connection.say(piece * times)
                await asyncio.sleep(PIECE_S)
        finally:
            ended.cancel()
        raise Refused
