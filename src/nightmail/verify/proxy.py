"""A proxy between one device and the server, which injects the faults of the plan.

Knows:   two streams of frames per connection, and the active fault.
Touches: a listening socket on this machine, and connections to the server.
Never:   drops a frame in the middle, because TCP does not. It drops everything that follows, then cuts the
         connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from .plan import Fault
from .redelivery import ConnectionCheck, RedeliveryCheck
from .websocket_frames import Frame, FrameSplitter

CHUNK = 1 << 16


class Upstream:
    """The address of the server."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self.secure = parts.scheme in {"https", "wss"}
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self._tls = (tls or ssl.create_default_context()) if self.secure else None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port, ssl=self._tls)


class RelayedConnection:
    """A connection of the device, and its counterpart to the server."""

    def __init__(self, check: ConnectionCheck, device: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._check, self._device, self.server = check, device, server
        self.up_gate, self.down_gate = asyncio.Event(), asyncio.Event()
        self.up_gate.set()
        self.down_gate.set()
        self.drop_up = self.drop_down = self.double = False
        self.second: asyncio.StreamWriter | None = None
        """Another server, which gets a copy of every frame with messages."""
        self.opening: list[bytes] = []
        """The first frames of the device: the HTTP request and its Hello."""

    async def carry_up(self, reader: asyncio.StreamReader) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(CHUNK):
            for frame in splitter.feed(data):
                await self.up_gate.wait()
                if self.drop_up or self.server.is_closing():
                    continue  # a device does not notice a dead connection, and goes on sending
                if len(self.opening) < 2:
                    self.opening.append(frame.raw)
                self.server.write(frame.raw)
                if frame.payload and self._check.up(frame.payload):
                    if self.double:
                        self._check.up(frame.payload)
                        self.server.write(frame.raw)
                    if self.second and not self.second.is_closing():
                        self.second.write(frame.raw)
            if not self.server.is_closing():
                await self.server.drain()

    async def carry_down(self, reader: asyncio.StreamReader) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(CHUNK):
            for frame in splitter.feed(data):
                self._see(frame)
                await self.down_gate.wait()
                if not self.drop_down and not self._device.is_closing():
                    self._device.write(frame.raw)
            await self._device.drain()
        # While the direction is held back, the device must not notice that the server closed.
        await self.down_gate.wait()

    def _see(self, frame: Frame) -> None:
        if frame.payload:
            self._check.down(frame.payload)

    def release(self) -> None:
        """Let both directions through."""
        self.up_gate.set()
        self.down_gate.set()

    def abort_device(self) -> None:
        _abort(self._device)

    def abort_server(self) -> None:
        _abort(self.server)

    def cut(self) -> None:
        self.release()
        self.abort_device()
        self.abort_server()


class Proxy:
    """Accepts the connections of one device, and relays them to the server."""

    def __init__(self, upstream: Upstream, check: RedeliveryCheck) -> None:
        self._upstream, self._check = upstream, check
        self._server: asyncio.Server | None = None
        self._passes: list[RelayedConnection] = []
        self._orphans: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._healed = asyncio.Event()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._passes:
            each.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def connections(self) -> int:
        """Connections of the device that are open here."""
        return len(self._passes)

    # --- connections --------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._relay(reader, writer)
        finally:
            _abort(writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self._upstream.open()
        each = RelayedConnection(self._check.connection(), writer, server_writer)
        self._passes.append(each)
        up = asyncio.ensure_future(each.carry_up(reader))
        down = asyncio.ensure_future(each.carry_down(server_reader))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            if down.done() and not down.cancelled() and down.exception() is None:
                # The server closed: let the device read its last frames.
                with suppress(OSError):
                    writer.write_eof()
                await asyncio.wait((up,), timeout=1)
        finally:
            self._passes.remove(each)
            if server_writer not in self._orphans:
                _abort(server_writer)
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    # --- faults -------------------------------------------------------------------------------

    async def inject(self, fault: Fault, seconds: float) -> bool:
        """Inject a fault into the newest connection. False if there is no connection."""
        if not self._passes or self._healed.is_set():
            return False
        each = self._passes[-1]
        match fault:
            case Fault.CUT:
                each.cut()
            case Fault.HALF_OPEN:
                await self._half_open(each, seconds)
            case Fault.DEAD_SERVER:
                each.down_gate.clear()
                each.abort_server()
                await self._lasting(seconds, each.cut)
            case Fault.STALL_UP:
                each.up_gate.clear()
                await self._lasting(seconds, each.release)
            case Fault.STALL_DOWN:
                each.down_gate.clear()
                await self._lasting(seconds, each.release)
            case Fault.DROP_ACKS:
                each.drop_up = True
                await self._lasting(seconds, each.cut)
            case Fault.DROP_ANSWERS:
                each.drop_down = True
                await self._lasting(seconds, each.cut)
            case Fault.DOUBLE_SENDS:
                each.double = True
                await self._lasting(seconds, lambda: setattr(each, "double", False))
            case Fault.RIVAL:
                await self._rival(each, seconds)
            case Fault.REOPEN:
                raise AssertionError("the run closes and opens clients, not the proxy")
        return True

    async def _lasting(self, seconds: float, then: Callable[[], None]) -> None:
        """Wait until the time is over or `heal` is called, then call `then`."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._healed.wait()
        finally:
            then()

    async def _half_open(self, each: RelayedConnection, seconds: float) -> None:
        """The server keeps the connection, while the device opens a second one."""
        server = each.server
        self._orphans.add(server)
        each.abort_device()
        await self._lasting(seconds, lambda: _abort(server))
        self._orphans.discard(server)

    async def send_to_two(self, other: Upstream, seconds: float) -> None:
        """What the device sends on its newest connection reaches another node of the cluster, too, as the same
        device's."""
        if self._passes and not self._healed.is_set():
            each = self._passes[-1]
            try:
                await self._rival(each, seconds, other, lambda second: setattr(each, "second", second))
            finally:
                each.second = None

    async def _rival(
        self,
        each: RelayedConnection,
        seconds: float,
        upstream: Upstream | None = None,
        on_open: Callable[[asyncio.StreamWriter], None] = lambda _: None,
    ) -> None:
        """Repeat the device's first frames on another connection, read everything, and acknowledge nothing."""
        if len(each.opening) < 2:
            return
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            reader, writer = await (upstream or self._upstream).open()
            try:
                writer.write(each.opening[0])
                await reader.readuntil(b"\r\n\r\n")
                writer.write(each.opening[1])
                reading = asyncio.ensure_future(_read_all(reader))
                on_open(writer)
                await self._lasting(seconds, writer.transport.abort)
                await asyncio.gather(reading, return_exceptions=True)
            finally:
                _abort(writer)

    def heal(self) -> None:
        """End all faults, and inject no more."""
        self._healed.set()


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(CHUNK):
        pass


def _abort(writer: asyncio.StreamWriter) -> None:
    with suppress(RuntimeError):
        writer.transport.abort()
