"""Splits a byte stream into WebSocket frames, after the HTTP header at its start.

Knows:   the part of RFC 6455 that the protocol uses: one frame per message.
Never:   changes a byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"
BINARY = 0x2


class Frame(NamedTuple):
    raw: bytes
    """The bytes as they were received."""
    payload: bytes
    """The unmasked payload of a binary frame; empty for other frames."""


class FrameSplitter:
    """Takes bytes, yields complete frames. The HTTP header is the first frame, and has no payload."""

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
        """Size of the frame's header and of its payload; None if more bytes are needed to tell."""
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
    """Unmasks all bytes at once, because a loop over single bytes is slow."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
