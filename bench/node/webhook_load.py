"""Load processes for calls to webhooks: somebody who schedules them over HTTP, and receivers.

    python -m bench.node.webhook_load schedule   an order on standard input, a finding on standard output
    python -m bench.node.webhook_load receive    a port on standard output; at the end of the input, a finding
    python -m bench.node.webhook_load hang       likewise: a receiver that never answers

A call's content says when it is due. All share this machine's clock.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from typing import Any, cast

import aiohttp
import httptools
import msgspec
import uvloop
from msgspec import Struct

from . import people
from .checks import histogram
from .machine import raise_open_files

HOST = "127.0.0.1"
REQUESTERS = 8
DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


class CallOrder(Struct, kw_only=True):
    port: int
    url: str
    calls: int
    accounts: int
    start: int
    """The first is due then, in milliseconds since 1970."""
    seconds: float
    """How long something is due."""


class CallsSeen(Struct, kw_only=True):
    calls: int = 0
    doubled: int = 0
    early: int = 0
    seconds: float = 0.0
    """From the first to the last."""
    late: dict[int, int] = {}


# --- scheduling -------------------------------------------------------------------------------


async def schedule(order: CallOrder) -> None:
    async def share(first: int) -> None:
        for n in range(first, order.calls, REQUESTERS):
            due = order.start + int(n * order.seconds * 1_000 / order.calls)
            person = n % order.accounts
            token = base64.urlsafe_b64encode(people.token(person)).rstrip(b"=").decode()
            asked = {
                "content": {"due": due, "n": n},
                "deliver_at": due,
                "target": {"type": "webhook", "url": order.url},
            }
            headers = {"Authorization": f"Bearer {people.device(person):x}.{token}"}
            async with session.post(f"http://{HOST}:{order.port}/v1/schedule", json=asked, headers=headers) as reply:
                if reply.status != 201:
                    raise SystemExit(f"a call was refused: {reply.status} {await reply.text()}")

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=REQUESTERS)) as session:
        await asyncio.gather(*map(share, range(REQUESTERS)))


# --- receiving --------------------------------------------------------------------------------


class Hub:
    def __init__(self) -> None:
        self.late: list[float] = []
        self.ids: set[int] = set()
        self.doubled = self.early = 0
        self.first = self.last = 0.0

    def take(self, body: bytes) -> None:
        now = time.time()
        self.first, self.last = self.first or now, now
        told: dict[str, Any] = json.loads(body)
        late = now - told["due"] / 1_000
        self.early += late < 0
        self.doubled += told["n"] in self.ids
        self.ids.add(told["n"])
        self.late.append(max(0.0, late))


class Receiver(asyncio.Protocol):
    def __init__(self, hub: Hub, *, hangs: bool) -> None:
        self._hub, self._hangs, self._body = hub, hangs, b""
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        self._hub.take(body)
        if not self._hangs and self._transport:
            self._transport.write(DONE)


async def receive(*, hangs: bool) -> None:
    hub, loop = Hub(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Receiver(hub, hangs=hangs), HOST, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    seen = CallsSeen(
        calls=len(hub.ids), doubled=hub.doubled, early=hub.early, seconds=hub.last - hub.first, late=histogram(hub.late)
    )
    print(msgspec.json.encode(seen).decode(), flush=True)


def main() -> None:
    raise_open_files()
    job = sys.argv[1]
    if job == "schedule":
        uvloop.run(schedule(msgspec.json.decode(sys.stdin.buffer.read(), type=CallOrder)))
    else:
        uvloop.run(receive(hangs=job == "hang"))


if __name__ == "__main__":
    main()
