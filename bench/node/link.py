"""A minimal WebSocket client, so cheap that the load generator does not distort the measurement.

Knows:   RFC 6455 as far as one server needs it: a handshake, masked binary frames out, plain ones in.
Touches: one transport.
Never:   reconnects by itself: its owner decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, FromDevice, FromServer

try:
    from websockets.speedups import apply_mask
except ImportError:  # where no wheel with the C part exists
    from websockets.utils import apply_mask

HOST = "127.0.0.1"
MASK = b"\x5a\x13\xc7\x88"
"""Masks protect proxies from web pages; between two processes of one machine any mask will do."""
REQUEST = (
    f"GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
).encode()
CLOSE = 0x8


class Link(asyncio.Protocol):
    """One connection. Say what `opened`, `heard` and `ended` mean."""

    __slots__ = ("_partial", "closed_with", "is_open", "retry_ms", "transport")

    def __init__(self) -> None:
        self._partial: bytes = b""
        self.is_open = False
        self.retry_ms: int | None = None
        """The server refused this connection, and asks to retry after this time."""
        self.closed_with = 0
        """The close code, if the server said one."""
        self.transport: asyncio.Transport | None = None

    def opened(self) -> None:
        """The handshake is done: say who this is."""

    def heard(self, items: list[FromServer]) -> None:
        """One frame."""

    def ended(self) -> None:
        """The connection is gone. `retry_ms` tells whether it was turned away."""

    # --- out ----------------------------------------------------------------------------------

    def send(self, items: Sequence[FromDevice]) -> None:
        """One frame, one write."""
        if self.transport is None:
            return
        frame = encode(items)
        size = len(frame)
        if size < 126:
            header = bytes((0x82, 0x80 | size))
        elif size < 65_536:
            header = b"\x82\xfe" + size.to_bytes(2, "big")
        else:
            header = b"\x82\xff" + size.to_bytes(8, "big")
        self.transport.write(header + MASK + apply_mask(frame, MASK))

    def hang_up(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # --- from the transport -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._partial = b""
        self.is_open = False
        self.retry_ms = None
        self.closed_with = 0
        self.transport.write(REQUEST)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.is_open = False
        self.ended()

    def data_received(self, data: bytes) -> None:
        if self._partial:
            data = self._partial + data
        at = 0 if self.is_open else self._shake_hands(data)
        size = len(data)
        while self.is_open and size - at >= 2:
            length, start = data[at + 1], at + 2
            if length >= 126:
                start += 2 if length == 126 else 8
                if size < start:
                    break
                length = int.from_bytes(data[at + 2 : start], "big")
            end = start + length
            if size < end:
                break
            if data[at] & 0x0F != CLOSE:
                self.heard(decode_from_server(data[start:end]))
            else:
                self.closed_with = int.from_bytes(data[start : start + 2], "big")
            at = end
        self._partial = data[at:]

    def _shake_hands(self, data: bytes) -> int:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return 0
        head = data[:end]
        if not head.startswith(b"HTTP/1.1 101"):
            self.retry_ms = _retry_after_ms(head)
            self.hang_up()
            return len(data)
        self.is_open = True
        self.opened()
        return end + 4


def _retry_after_ms(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"retry-after":
            return int(value) * 1_000
    raise ConnectionError(f"the server wants no devices: {head.decode(errors='replace')}")
