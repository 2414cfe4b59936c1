"""Relays on loopback: what stands between the nodes and what they speak to, so that a link can be cut without root.

Knows:   which process is behind each connection, as the kernel tells, and which links are cut.
Touches: sockets on this machine.
Never:   loses bytes in the middle of a connection, because TCP does not: while a link is cut they wait on both sides,
         and afterwards the connection goes on, unless an end has given it up meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
CHUNK = 1 << 16

Filter = Callable[[bytes], tuple[bytes, bytes]]
"""What an end says → what the other end gets, and what the first gets back at once."""
NamedFilters = Callable[[str], tuple[Filter, Filter]]
"""The name of who connects → filters for both directions of a new connection."""


def _unchanged(data: bytes) -> tuple[bytes, bytes]:
    return data, b""


class RelayThread:
    """Where relays run: apart from clients, whose commits may keep an event loop for seconds on a busy disk. Nodes
    would be cut off from everything, which no plan says."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="relays", daemon=True)
        self._thread.start()

    async def do(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Relay:
    """Stands before one server. Connections of each process can be cut by the process's name."""

    def __init__(
        self, upstream: int, who: Callable[[int, int], str], filters: NamedFilters = lambda _: (_unchanged, _unchanged)
    ) -> None:
        """`who(port, relay)`: the name of the process that connects from that port to the relay's."""
        self.upstream, self._who, self._filters = upstream, who, filters
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, port)
        self.port = port

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, name: str) -> None:
        """Nothing passes between this process and the server, in either direction."""
        self._on_its_loop(lambda: self._gate(name).clear())

    def heal(self, name: str) -> None:
        self._on_its_loop(lambda: self._gate(name).set())

    def _on_its_loop(self, change: Callable[[], None]) -> None:
        assert self._server is not None, "start it first"
        self._server.get_loop().call_soon_threadsafe(change)

    def _gate(self, name: str) -> asyncio.Event:
        if name not in self._gates:
            self._gates[name] = asyncio.Event()
            self._gates[name].set()
        return self._gates[name]

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
        name = self._who(writer.get_extra_info("peername")[1], self.port)
        gate = self._gate(name)
        await gate.wait()
        far_reader, far_writer = await asyncio.open_connection(HOST, self.upstream)
        up, down = self._filters(name)
        ways = [
            asyncio.ensure_future(_carry(reader, far_writer, writer, gate, up)),
            asyncio.ensure_future(_carry(far_reader, writer, far_writer, gate, down)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            _abort(far_writer)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _carry(
    reader: asyncio.StreamReader,
    far: asyncio.StreamWriter,
    near: asyncio.StreamWriter,
    gate: asyncio.Event,
    passed: Filter,
) -> None:
    while data := await reader.read(CHUNK):
        await gate.wait()
        onward, back = passed(data)
        if back:
            near.write(back)
        if onward:
            far.write(onward)
            await far.drain()
    await gate.wait()  # Nor does an end learn that the other has closed.


def _abort(writer: asyncio.StreamWriter) -> None:
    with suppress(RuntimeError):
        writer.transport.abort()


def process_behind(port: int, relay: int, pids: Sequence[tuple[str, int]]) -> str:
    """The name of the process that has the connection from `port` to `relay`; empty: none of these."""
    here, there = f"0100007F:{port:04X}", f"0100007F:{relay:04X}"
    inode = ""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1] == here and words[2] == there:
            inode = words[9]
            break
    for name, pid in pids:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(link.readlink()) == f"socket:[{inode}]":
                        return name
    return ""
