"""The links between nodes: gRPC, one stream of packets from each node to each other one, with mutual TLS.

Knows:   the address of every other node, and the certificate that this one shows.
Touches: sockets.
Never:   waits for a node that does not take what it is told: a packet beyond what a queue holds is lost, and repaired
         by those who wait for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

# Read once, when the library is loaded: it would write lines of its own to standard error.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
import grpc
import grpc.aio

from nightmail.engine.ports import EngineError

SERVICE = "nightmail.ConnectionServer"
EXCHANGE = f"/{SERVICE}/Exchange"
PACKET_BYTES = 64 * 1024 * 1024
QUEUED = 10_000
"""Packets that wait for one node."""
RETRY_S = 0.2
OPTIONS = [
    ("grpc.max_receive_message_length", PACKET_BYTES),
    ("grpc.max_send_message_length", PACKET_BYTES),
    ("grpc.keepalive_time_ms", 2_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.so_reuseport", 0),
]


class Credentials:
    """Of one node: PEM. All nodes have certificates of one authority, which signs for nothing else."""

    def __init__(self, authority: bytes, certificate: bytes, key: bytes) -> None:
        self.server = grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
        self.client = grpc.ssl_channel_credentials(authority, key, certificate)


class GrpcLinks:
    """`start`, `connect` to those that are known, `close`."""

    def __init__(
        self, take: Callable[[bytes], None], run: Callable[[Callable[[], None]], None], credentials: Credentials | None
    ) -> None:
        """`take` is called with each packet, through `run`. Without credentials nobody is asked who it is."""
        self._take, self._run, self._credentials = take, run, credentials
        self._server: Any = None
        self._links: dict[int, _Link] = {}
        self.lost = 0
        """Packets that found a queue full."""

    async def start(self, address: str) -> int:
        """Listen; returns the port. Raises EngineError."""
        self._server = server = grpc.aio.server(options=OPTIONS)
        handler = cast("Any", grpc).stream_unary_rpc_method_handler(self._listen)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Exchange": handler}),))
        try:
            credentials = self._credentials
            port = (
                server.add_secure_port(address, credentials.server)
                if credentials
                else server.add_insecure_port(address)
            )
        except RuntimeError:
            raise EngineError(f"nodes cannot be listened for at {address}: is the port taken?") from None
        await server.start()
        return port

    async def _listen(self, packets: AsyncIterator[bytes], _context: object) -> bytes:
        async for packet in packets:
            self._run(partial(self._take, packet))
        return b""

    def connect(self, addresses: Mapping[int, str]) -> None:
        """Node → where it listens: these, and no others."""
        for number, link in list(self._links.items()):
            if addresses.get(number) != link.address:
                link.close()
                del self._links[number]
        for number, address in addresses.items():
            if number not in self._links:
                self._links[number] = _Link(address, self._credentials)

    def send(self, node: int, packet: bytes) -> None:
        if (link := self._links.get(node)) and not link.put(packet):
            self.lost += 1

    async def close(self) -> None:
        for link in self._links.values():
            link.close()
        if self._server:
            await self._server.stop(None)


class _Link:
    """To one node."""

    def __init__(self, address: str, credentials: Credentials | None) -> None:
        self.address, self._credentials = address, credentials
        self._packets: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, packet: bytes) -> bool:
        try:
            self._packets.put_nowait(packet)
        except asyncio.QueueFull:
            return False
        return True

    async def _run(self) -> None:
        while True:
            made: Any = (
                grpc.aio.secure_channel(self.address, self._credentials.client, options=OPTIONS)
                if self._credentials
                else grpc.aio.insecure_channel(self.address, options=OPTIONS)
            )
            async with made as channel:
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await channel.channel_ready()
                    stream = channel.stream_unary(EXCHANGE)()
                    while True:
                        await stream.write(await self._packets.get())
            await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        self._task.cancel()
