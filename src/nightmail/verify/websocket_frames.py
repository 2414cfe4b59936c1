"""WebSocket frames cut out of a stream of bytes, after the HTTP head that begins it.

Knows:   RFC 6455 as far as both sides here use it: one frame per message.
Never:   changes a byte. What it cannot cut into frames is handed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"
BINARY = 0x2


class Frame(NamedTuple):
    raw: bytes
    """As it came, and as it must go on."""
    payload: bytes
    """Of a binary frame, unmasked; empty otherwise."""


class FrameSplitter:
    """Feed it what came; take out what is complete. The HTTP head comes first, and is a frame without payload."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._past_head = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._bytes += data
        while frame := self._next():
            yield frame

    def _next(self) -> Frame | None:
        if not self._past_head:
            end = self._bytes.find(HEAD_END)
            if end < 0:
                return None
            self._past_head = True
            return Frame(self._take(end + len(HEAD_END)), b"")
        if (size := self._size()) is None or len(self._bytes) < sum(size):
            return None
        head, length = size
        raw = self._take(head + length)
        if raw[0] & 0xF != BINARY:
            return Frame(raw, b"")
        payload = raw[head:]
        return Frame(raw, _unmasked(payload, raw[head - 4 : head]) if raw[1] & 0x80 else payload)

    def _size(self) -> tuple[int, int] | None:
        """Bytes of the frame's head and of its payload; None: not enough has come to tell."""
        data = self._bytes
        if len(data) < 2:
            return None
        length, head = data[1] & 0x7F, 2
        if length >= 126:
            more = 2 if length == 126 else 8
            if len(data) < 2 + more:
                return None
            length, head = int.from_bytes(data[2 : 2 + more]), 2 + more
        return head + (4 if data[1] & 0x80 else 0), length

    def _take(self, count: int) -> bytes:
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        return taken


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    """All bytes at once: a loop over them would be the slowest thing here."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
