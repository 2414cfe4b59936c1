"""The same work in MQTT 3.1.1, by hand: publish, deliver, receipt, each of them acknowledged (QoS 1).

Knows:   as much of MQTT as one broker needs; the writer's topic and the reader's.
Never:   writes twice where once would do: what one read brings is answered by one write.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import cast

from .checks import BODY, BODY_BYTES
from .phone import Hub

CONNACK, PUBLISH, PUBACK, SUBACK = 2, 3, 4, 9
NUMBER_BYTES = 8
PACKETS = 65_535
"""Packet ids; far more than are ever in flight."""


def _packet(kind: int, body: bytes) -> bytes:
    size, length = len(body), bytearray()
    while True:
        size, digit = size >> 7, size & 0x7F
        length.append(digit | 0x80 if size else digit)
        if not size:
            return bytes((kind,)) + bytes(length) + body


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


class MqttPhone(asyncio.Protocol):
    """One client. It reads its own topic and publishes to its peer's: messages if it writes, receipts if not."""

    def __init__(self, hub: Hub, number: int, peer: int, window: int, *, writes: bool, grouped: bool) -> None:
        self._hub, self._number, self._writes, self._grouped = hub, number, writes, grouped
        self._window = window if writes else 0
        self._topic = _text(b"bench/%d" % peer)
        self._partial = b""
        self._packet_id = 0
        self._n = self._acked = self._delivered = self._shown = 0
        self._began: deque[float] = deque()
        self._asked: deque[float] = deque()
        self.going = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        # Not a clean session: the broker keeps what is not acknowledged.
        self.transport.write(_packet(0x10, _text(b"MQTT") + b"\x04\x00\x00\x00" + _text(b"bench%d" % self._number)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._hub.why = self._hub.why or "the broker closed a connection"

    def go(self) -> None:
        self.going = True
        out: list[bytes] = []
        self._fill_window(out)
        if out and self.transport:
            self.transport.write(b"".join(out))

    def _fill_window(self, out: list[bytes]) -> None:
        if self.going and self._n - self._delivered < self._window:
            now = time.monotonic()
            while self._n - self._delivered < self._window:
                self._n += 1
                self._began.append(now)
                self._asked.append(now)
                self._hub.tally.sent += 1
                self._publish(self._n, BODY[NUMBER_BYTES:], out)

    def _publish(self, n: int, rest: bytes, out: list[bytes]) -> None:
        self._packet_id = self._packet_id % PACKETS + 1
        body = self._topic + self._packet_id.to_bytes(2, "big") + n.to_bytes(NUMBER_BYTES, "big") + rest
        out.append(_packet(PUBLISH << 4 | 1 << 1, body))

    def data_received(self, data: bytes) -> None:
        if self._partial:
            data = self._partial + data
        at, size, out, shown = 0, len(data), list[bytes](), self._shown
        while size - at >= 2:
            length, start, shift = 0, at + 1, 0
            while start < size:
                digit = data[start]
                length |= (digit & 0x7F) << shift
                start, shift = start + 1, shift + 7
                if digit < 0x80:
                    break
            else:
                break
            if size < start + length:
                break
            self._take(data[at] >> 4, data[start : start + length], out)
            at = start + length
        self._partial = data[at:]
        if self._grouped and self._shown > shown and not self._writes:
            self._publish(self._shown, b"", out)
        self._fill_window(out)
        if out and self.transport:
            self.transport.write(b"".join(out))

    def _take(self, kind: int, body: bytes, out: list[bytes]) -> None:
        hub = self._hub
        if kind == PUBLISH:
            at = 2 + int.from_bytes(body[:2], "big")
            out.append(b"\x40\x02" + body[at : at + 2])
            n = int.from_bytes(body[at + 2 : at + 2 + NUMBER_BYTES], "big")
            if self._writes:
                self._take_receipt(n)
            else:
                self._take_message(n, len(body) - at - 2, out)
        elif kind == PUBACK and self._writes:
            self._acked += 1
            hub.tally.answered += 1
            hub.answers.append(time.monotonic() - self._asked.popleft())
        elif kind == CONNACK:
            own = _text(b"bench/%d" % self._number)
            out.append(_packet(0x82, b"\x00\x01" + own + b"\x01"))
        elif kind == SUBACK:
            hub.ready += 1

    def _take_message(self, n: int, size: int, out: list[bytes]) -> None:
        tally = self._hub.tally
        tally.shown += 1
        tally.lost += max(0, n - self._shown - 1)
        tally.doubled += n <= self._shown
        tally.changed += size != BODY_BYTES
        self._shown = max(self._shown, n)
        if not self._grouped:
            self._publish(n, b"", out)

    def _take_receipt(self, n: int) -> None:
        hub, now = self._hub, time.monotonic()
        if n <= self._delivered:
            hub.tally.doubled += 1
            return
        arrived = n - self._delivered
        self._delivered = n
        hub.tally.delivered += arrived
        hub.latencies.extend(now - self._began.popleft() for _ in range(arrived))

    # --- the end ------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        return self._delivered == self._n == self._acked

    def finish(self) -> None:
        self._hub.tally.lost += self._n - self._delivered
