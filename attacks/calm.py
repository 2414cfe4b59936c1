"""Those who must not notice: a pair that talks, and newcomers that connect.

Knows:   when each message was sent and when it arrived; how long each newcomer took.
Never:   sends faster than a person may.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence

from nightmail.model.records import Acked, Envelope, Published, Sent
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import Ask, Entries

from .connection import WAIT_S, Connection, Person, Refused, register

EVERY_S = 0.025
"""One message in this time."""
NEWCOMER_EVERY_S = 0.25
WINDOW = 255


def message(by: Person, to: Person, n: int, body: bytes = b"sealed") -> Sent:
    return Sent(
        to=to.account, lane=Lane.NORMAL, n=n, floor=max(1, n - WINDOW), seen=0,
        id=f"{by.device:x}:1700000000000:{n:05d}:x", tag=bytes(16), kind=Kind.TEXT, of=None, life_ms=0,
        list_version=1, envelopes=(Envelope(to.device, 7, body),), own_envelopes=(),
    )  # fmt: skip


def some_keys(count: int) -> Published:
    """Of the right lengths; nobody opens anything with them."""
    ids = range(1, count + 1)
    return Published(
        registration=7,
        identity=bytes(128),
        signed=(1).to_bytes(4, "big").ljust(100, b"s"),
        last_resort=(b"\1" + (1).to_bytes(4, "big")).ljust(1_637, b"l"),
        one_time=tuple(n.to_bytes(4, "big").ljust(36, b"o") for n in ids),
        one_time_kem=tuple((b"\0" + n.to_bytes(4, "big")).ljust(1_637, b"k") for n in ids[:40]),
    )


def quantile_ms(waits: Sequence[float], part: float) -> float:
    """Of waits in seconds; infinite if there are none."""
    if not waits:
        return math.inf
    return sorted(waits)[min(len(waits) - 1, int(len(waits) * part))] * 1_000


class Pair:
    """Ada writes to Bob, at a steady pace."""

    def __init__(self, port: int, ada: Person, bob: Person) -> None:
        self._port, self._ada, self.bob = port, ada, bob
        self._n = 0
        self._sent_at: dict[int, float] = {}
        self._waits: list[float] = []

    async def talk(self, seconds: float) -> list[float]:
        """How long each message took, in s. One that did not arrive counts as infinite."""
        async with Connection(self._port) as ada, Connection(self._port) as bob:
            await ada.greet(self._ada)
            await bob.greet(self.bob)
            await bob.items(Ask(1, some_keys(100)))
            tasks = [asyncio.create_task(each) for each in (self._receive(bob), self._drop(ada))]
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self._n += 1
                self._sent_at[self._n] = time.monotonic()
                await ada.items(Ask(self._n, message(self._ada, self.bob, self._n)))
                await asyncio.sleep(EVERY_S)
            late = time.monotonic() + WAIT_S
            while self._sent_at and time.monotonic() < late and not tasks[0].done():  # noqa: ASYNC110
                await asyncio.sleep(EVERY_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        waits = [*self._waits, *(math.inf for _ in self._sent_at)]
        self._waits, self._sent_at = [], {}
        return waits

    async def _receive(self, bob: Connection) -> None:
        while True:
            for item in await bob.hear():
                if isinstance(item, Entries):
                    now, last = time.monotonic(), item.first + len(item.entries) - 1
                    for entry in item.entries:
                        if entry.by == self._ada.device and (sent := self._sent_at.pop(entry.n, None)):
                            self._waits.append(now - sent)
                    await bob.items(Ask(0, Acked(item.lane, last)))

    async def _drop(self, ada: Connection) -> None:
        while True:
            await ada.hear()


async def make_pair(port: int) -> Pair:
    return Pair(port, await register(port, "calm-ada"), await register(port, "calm-bob"))


async def slowest_newcomer_s(port: int, who: Person, seconds: float) -> float:
    """Connect again and again: how long it took at most, in s, until the device was welcome."""
    slowest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_S), Connection(port) as connection:
                await connection.greet(who)
        except (Refused, OSError, TimeoutError):
            return math.inf
        slowest = max(slowest, time.monotonic() - began)
        await asyncio.sleep(NEWCOMER_EVERY_S)
    return slowest
