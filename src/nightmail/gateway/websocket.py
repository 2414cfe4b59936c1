"""RFC 6455, the server's side, on an asyncio transport: bytes → messages → session, frames → bytes.

Knows:   how WebSocket puts messages into bytes; nothing of what is in them.
Touches: one transport. What it reads into is shared by all connections, so an idle one owns no buffer.
Never:   reads more of a message than it may be large. Extensions are not spoken, so nothing is ever unpacked.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from hashlib import sha1

from nightmail.wire.closing import CloseCode

from .limits import GatewayLimits
from .session import Session

try:
    from websockets.speedups import apply_mask
except ImportError:  # where no wheel with the C part exists
    from websockets.utils import apply_mask

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 1.3."""

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN, RESERVED, OPCODE, MASKED, LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
WHOLE = FIN | BINARY
"""How nearly every frame begins: a message in one piece."""
CONTROL_BYTES = 125
"""RFC 6455, 5.5."""
REASON_BYTES = CONTROL_BYTES - 2
_incoming = memoryview(bytearray(256 * 1024))
"""One buffer for everybody: whatever is in it is taken before the next read begins."""


def accept_key(key: bytes) -> bytes | None:
    """The proof that the handshake was understood; None if `key` is none."""
    try:
        if len(b64decode(key, validate=True)) != 16:
            return None
    except NotBase64:
        return None
    return b64encode(sha1(key + GUID, usedforsecurity=False).digest())


class WebSocket(asyncio.BufferedProtocol):
    """A `Link`, once `begin` has given it its transport and session."""

    __slots__ = ("_closing", "_fragments", "_limits", "_now", "_partial", "_session", "_small", "_told", "_transport")

    def __init__(self, limits: GatewayLimits, now: Callable[[], int]) -> None:
        self._limits, self._now = limits, now
        self._small = min(limits.hello_bytes, limits.frame_bytes)
        """A frame up to this size is not too large, whoever sent it."""
        self._partial: bytearray | None = None
        """The beginning of a frame whose end has not come yet."""
        self._fragments: bytearray | None = None
        """The beginning of a message that comes in several frames."""
        self._closing = False
        self._told = False
        """The other side has said that it closes."""

    def begin(self, transport: asyncio.Transport, session: Session) -> None:
        self._transport, self._session = transport, session
        transport.set_write_buffer_limits(self._limits.unsent_bytes, self._limits.unsent_bytes // 4)

    # --- a Link -------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        self._write(BINARY, frame)

    def close(self, code: int, sentence: str) -> None:
        if not self._closing:
            reason = sentence.encode()[:REASON_BYTES].decode("utf-8", "ignore").encode()
            self._write(CLOSE, struct.pack(">H", code) + reason)
            self._closing = True
            self._partial = self._fragments = None
            if self._told or not self._transport.can_write_eof():
                self._transport.close()
            else:
                # Closed with something unread, the connection would be reset, and the last words might be lost:
                # what still comes is read and dropped, until the other side closes or the session cuts it off.
                self._transport.write_eof()
                self._transport.resume_reading()

    def cut(self) -> None:
        self._transport.abort()

    def unsent(self) -> int:
        return self._transport.get_write_buffer_size()

    def stalled(self) -> bool:
        if self._transport.get_write_buffer_size():
            return True
        connection = self._transport.get_extra_info("socket")
        if connection is None or connection.fileno() < 0:
            return True
        waiting = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(waiting, "little") > 0

    def _write(self, opcode: int, payload: bytes) -> None:
        if self._closing:
            return
        size = len(payload)
        if size < 126:
            header = bytes((FIN | opcode, size))
        elif size < 65_536:
            header = struct.pack(">BBH", FIN | opcode, 126, size)
        else:
            header = struct.pack(">BBQ", FIN | opcode, 127, size)
        self._transport.write(header + payload)

    # --- from the transport -------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return _incoming

    def buffer_updated(self, nbytes: int) -> None:
        self.take(_incoming[:nbytes])

    def take(self, data: memoryview) -> None:
        """Bytes that arrived; what is not a whole frame yet is kept."""
        if (partial := self._partial) is None:
            taken = self._parse(data)
            if taken < len(data) and not self._closing:
                self._partial = bytearray(data[taken:])
            return
        partial += data
        with memoryview(partial) as view:
            taken = self._parse(view)
        if taken == len(partial) or self._closing:
            self._partial = None
        elif taken:
            del partial[:taken]

    def _parse(self, data: memoryview) -> int:
        """Handle the whole frames in `data`; how many bytes they were."""
        at, size = 0, len(data)
        while size - at >= 2 and not self._closing:
            first, second = data[at], data[at + 1]
            length, start = second & LENGTH, at + 6
            if length >= 126:
                wide = 2 if length == 126 else 8
                if size - at < 2 + wide:
                    break
                length, start = int.from_bytes(data[at + 2 : at + 2 + wide], "big"), start + wide
            usual = first == WHOLE and second >= MASKED and length <= self._small and self._fragments is None
            if not usual and (wrong := self._complaint(first, second, length)):
                self._session.close(wrong)
                break
            end = start + length
            if size < end:
                break
            payload = apply_mask(data[start:end], bytes(data[start - 4 : start]))
            at = end
            if first == WHOLE:
                self._session.receive(payload, self._now())
            else:
                self._unusual(first, payload)
        return at

    def _complaint(self, first: int, second: int, length: int) -> CloseCode | None:
        """What is wrong with a header, before anything behind it is read."""
        opcode = first & OPCODE
        if first & RESERVED or not second & MASKED:
            return CloseCode.PROTOCOL
        if opcode >= CLOSE:
            ok = opcode in {CLOSE, PING, PONG} and first & FIN and length <= CONTROL_BYTES
            return None if ok else CloseCode.PROTOCOL
        if opcode == TEXT:
            return CloseCode.NOT_BINARY
        if opcode not in {BINARY, CONTINUATION} or (opcode == CONTINUATION) != (self._fragments is not None):
            return CloseCode.PROTOCOL
        limit = self._limits.frame_bytes if self._session.device else self._limits.hello_bytes
        if length + (len(self._fragments) if self._fragments is not None else 0) > limit:
            return CloseCode.TOO_LARGE
        return None

    def _unusual(self, first: int, payload: bytes) -> None:
        """Control frames, and messages in several frames."""
        opcode = first & OPCODE
        if opcode == PING:
            self._write(PONG, payload)
        elif opcode == CLOSE:
            self._told = True
            self._session.close(CloseCode.NORMAL)
        elif opcode != PONG:
            if self._fragments is None:
                self._fragments = bytearray()
            self._fragments += payload
            if first & FIN:
                message, self._fragments = self._fragments, None
                self._session.receive(message, self._now())

    def pause_writing(self) -> None:
        # Who does not listen is not listened to: their questions would only make more answers wait.
        if not self._closing:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._closing:
            self._transport.resume_reading()
            self._session.wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._partial = self._fragments = None
        self._session.lost()
