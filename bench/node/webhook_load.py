"""Load processes for calls to webhooks: receivers.

    python -m bench.node.webhook_load receive   a port on standard output; at the end of the input, a finding
    python -m bench.node.webhook_load hang      likewise: a receiver that never answers

A call's content says when it is due. All share this machine's clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, cast

import httptools
import msgspec
import uvloop
from msgspec import Struct

from .checks import histogram
from .machine import raise_open_files

HOST = "127.0.0.1"
DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


class CallsSeen(Struct, kw_only=True):
    calls: int = 0
    doubled: int = 0
    early: int = 0
    seconds: float = 0.0
    """From the first to the last."""
    late: dict[int, int] = {}


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
    uvloop.run(receive(hangs=sys.argv[1] == "hang"))


if __name__ == "__main__":
    main()
