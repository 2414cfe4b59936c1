"""What stands between one device and the server, and does to its connection what the plan says.

Knows:   two streams per connection, cut into frames; which fault is on.
Touches: sockets on this machine, and the server's.
Never:   loses a frame out of the middle: TCP does not. What is swallowed is the rest, and then the line is cut.
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
    """Where the server is."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self.secure = parts.scheme in {"https", "wss"}
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self._tls = (tls or ssl.create_default_context()) if self.secure else None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port, ssl=self._tls)


class RelayedConnection:
    """One connection of the device, and the one to the server that belongs to it."""

    def __init__(self, line: ConnectionCheck, device: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._line, self._device, self.server = line, device, server
        self.up_open, self.down_open = asyncio.Event(), asyncio.Event()
        self.up_open.set()
        self.down_open.set()
        self.swallow_up = self.swallow_down = self.double = False
        self.opening: list[bytes] = []
        """The device's first words: the request and its Hello."""

    async def carry_up(self, reader: asyncio.StreamReader) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(CHUNK):
            for frame in splitter.feed(data):
                await self.up_open.wait()
                if self.swallow_up or self.server.is_closing():
                    continue  # a device behind a dead line goes on talking
                if len(self.opening) < 2:
                    self.opening.append(frame.raw)
                self.server.write(frame.raw)
                if frame.payload and self._line.up(frame.payload) and self.double:
                    self._line.up(frame.payload)
                    self.server.write(frame.raw)
            if not self.server.is_closing():
                await self.server.drain()

    async def carry_down(self, reader: asyncio.StreamReader) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(CHUNK):
            for frame in splitter.feed(data):
                self._see(frame)
                await self.down_open.wait()
                if not self.swallow_down and not self._device.is_closing():
                    self._device.write(frame.raw)
            await self._device.drain()
        # A device behind a dead line does not hear that the server is gone.
        await self.down_open.wait()

    def _see(self, frame: Frame) -> None:
        if frame.payload:
            self._line.down(frame.payload)

    def flow(self) -> None:
        """Whatever was held up goes on."""
        self.up_open.set()
        self.down_open.set()

    def abort_device(self) -> None:
        _abort(self._device)

    def abort_server(self) -> None:
        _abort(self.server)

    def cut(self) -> None:
        self.flow()
        self.abort_device()
        self.abort_server()


class Proxy:
    """The door through which one device reaches the server."""

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
                # The server closed: what it said last is the device's to read.
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

    async def suffer(self, fault: Fault, seconds: float) -> bool:
        """Do this to the newest connection, for so long. False: there was none."""
        if not self._passes or self._healed.is_set():
            return False
        each = self._passes[-1]
        match fault:
            case Fault.CUT:
                each.cut()
            case Fault.HALF_OPEN:
                await self._half_open(each, seconds)
            case Fault.DEAD_SERVER:
                each.down_open.clear()
                each.abort_server()
                await self._lasting(seconds, each.cut)
            case Fault.STALL_UP:
                each.up_open.clear()
                await self._lasting(seconds, each.flow)
            case Fault.STALL_DOWN:
                each.down_open.clear()
                await self._lasting(seconds, each.flow)
            case Fault.DROP_ACKS:
                each.swallow_up = True
                await self._lasting(seconds, each.cut)
            case Fault.DROP_ANSWERS:
                each.swallow_down = True
                await self._lasting(seconds, each.cut)
            case Fault.DOUBLE_SENDS:
                each.double = True
                await self._lasting(seconds, lambda: setattr(each, "double", False))
            case Fault.RIVAL:
                await self._rival(each, seconds)
            case Fault.REOPEN:
                raise AssertionError("an app is closed by whoever opened it")
        return True

    async def _lasting(self, seconds: float, then: Callable[[], None]) -> None:
        """Until the time is over, or everything is to heal."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._healed.wait()
        finally:
            then()

    async def _half_open(self, each: RelayedConnection, seconds: float) -> None:
        """The server keeps a connection whose device is gone, while the device makes a second one."""
        server = each.server
        self._orphans.add(server)
        each.abort_device()
        await self._lasting(seconds, lambda: _abort(server))
        self._orphans.discard(server)

    async def _rival(self, each: RelayedConnection, seconds: float) -> None:
        """Say the device's own first words over another connection, and nothing more: it may not acknowledge."""
        if len(each.opening) < 2:
            return
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            reader, writer = await self._upstream.open()
            try:
                writer.write(each.opening[0])
                await reader.readuntil(b"\r\n\r\n")
                writer.write(each.opening[1])
                reading = asyncio.ensure_future(_read_all(reader))
                await self._lasting(seconds, writer.transport.abort)
                await asyncio.gather(reading, return_exceptions=True)
            finally:
                _abort(writer)

    def heal(self) -> None:
        """No more faults; those that last end now."""
        self._healed.set()


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(CHUNK):
        pass


def _abort(writer: asyncio.StreamWriter) -> None:
    with suppress(RuntimeError):
        writer.transport.abort()
