"""The outlet of a node whose calls are made by processes of their own (`nightmail outlet`).

Knows:   which processes are connected, and which calls each of them is making.
Touches: a socket in the data folder, on the node's event loop.

A call whose process has gone is given to another one: nobody knows whether it was made, and repeating it is safe. While
no process is connected, calls wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from .link import SOCKET_NAME, Calls, Ends, MessageReader, Setup, decode, encode
from .ports import Ended, WebhookCall

log = logging.getLogger("nightmail.outlets")


class ProcessesOutlet:
    """An `Outlet`. `listen` before the first call."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._tell: Ended | None = None
        self._lines: list[_Line] = []
        self._orphans: dict[int, WebhookCall] = {}
        """Calls that nobody makes at the moment."""
        self._server: asyncio.Server | None = None
        self._path: Path | None = None

    async def listen(self, folder: Path) -> None:
        self._path = folder / SOCKET_NAME
        self._path.unlink(missing_ok=True)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Line(self), str(self._path))

    @property
    def processes(self) -> int:
        return len(self._lines)

    def attend(self, ended: Ended) -> None:
        self._tell = ended

    def begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        if not self._lines:
            self._orphans |= dict(calls)
            return
        # The one with the least to do; all of them at once, because calls come in small batches.
        min(self._lines, key=lambda line: len(line.calls)).begin(list(calls))

    @property
    def is_ready(self) -> bool:
        return bool(self._lines)

    def close(self) -> None:
        if self._server:
            self._server.close()
        for line in list(self._lines):
            line.hang_up()
        if self._path:
            self._path.unlink(missing_ok=True)

    # --- from the lines -----------------------------------------------------------------------

    def connected(self, line: _Line) -> None:
        self._lines.append(line)
        line.send(self._setup)
        log.info("an outlet process has connected", extra={"processes": len(self._lines)})
        if self._orphans:
            orphans, self._orphans = self._orphans, {}
            line.begin(list(orphans.items()))

    def lost(self, line: _Line) -> None:
        self._lines.remove(line)
        log.warning("an outlet process has gone", extra={"processes": len(self._lines)})
        if line.calls:
            self.begin(list(line.calls.items()))

    def ended(self, ends: Ends) -> None:
        assert self._tell is not None
        self._tell(ends)


class _Line(asyncio.Protocol):
    """One process."""

    def __init__(self, outlet: ProcessesOutlet) -> None:
        self._outlet, self._messages = outlet, MessageReader()
        self._transport: asyncio.Transport | None = None
        self.calls: dict[int, WebhookCall] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._outlet.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._outlet.lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._messages.feed(data):
                ends = [end for end in decode(body, Ends) if self.calls.pop(end[0], None)]
                if ends:
                    self._outlet.ended(ends)
        except (ValueError, msgspec.DecodeError):
            log.error("an outlet process says what nobody understands")
            self.hang_up()

    def begin(self, calls: Calls) -> None:
        self.calls |= dict(calls)
        self.send(calls)

    def send(self, message: Setup | Calls) -> None:
        if self._transport:
            self._transport.write(encode(message))

    def hang_up(self) -> None:
        if self._transport:
            self._transport.abort()
