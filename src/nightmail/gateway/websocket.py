"""RFC 6455, the server's side, on an asyncio transport: bytes → messages → session, frames → bytes.

Knows:   how WebSocket frames messages; nothing of what is in them.
Touches: one transport. All connections read into one shared buffer, so an idle one owns none.
Never:   reads a message that is larger than allowed. It supports no extensions, so nothing is decompressed.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable

from nightmail.wire.closing import CloseCode

from .limits import GatewayLimits
from .session import Session

try:
    from websockets.speedups import apply_mask
except ImportError:  # where no wheel with the C part exists
    from websockets.utils import apply_mask

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN, RESERVED, OPCODE, MASKED, LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
WHOLE = FIN | BINARY
"""How nearly every frame begins: a whole message."""
CONTROL_BYTES = 125
"""RFC 6455, 5.5."""
REASON_BYTES = CONTROL_BYTES - 2
READ_BYTES = 256 * 1024
CHARGED_BYTES = 4_096
"""A smaller read is not charged by its bytes: what it can bring is limited by number."""
_incoming = memoryview(bytearray(READ_BYTES))
"""One buffer for all connections: its content is taken before the next read begins."""


class WebSocketRules:
    """What all connections of one gateway share."""

    __slots__ = ("limits", "next_turn", "now", "share", "small")

    def __init__(
        self, limits: GatewayLimits, now: Callable[[], int], next_turn: Callable[[Callable[[], None]], None]
    ) -> None:
        """`next_turn` calls what it is given in a later turn of the event loop."""
        self.limits, self.now, self.next_turn = limits, now, next_turn
        self.share = range(limits.turn_frames)
        """The frames of one turn. The loop over them counts without a variable."""
        self.small = min(limits.hello_bytes, limits.frame_bytes)
        """A frame up to this size is allowed before and after the `Hello`."""


class WebSocket(asyncio.BufferedProtocol):
    """A `Link`, once `begin` has given it its transport and session."""

    __slots__ = (
        "_closing", "_fragments", "_held", "_partial", "_peer_closed", "_rules", "_session", "_transport", "_unread",
    )  # fmt: skip

    data_received = None
    """uvloop keeps this method of the last protocol that had one: without it, each connection's door would stay."""

    def __init__(self, rules: WebSocketRules) -> None:
        self._rules = rules
        self._held = False
        """Nothing is read: the share of this turn is used up, or the session wants it so, or the link is closing."""
        self._unread = False
        """The peer does not read, so nothing is read from it."""
        self._partial: bytearray | None = None
        """The beginning of a frame that has not arrived whole."""
        self._fragments: bytearray | None = None
        """The beginning of a message that is sent in several frames."""
        self._closing = False
        self._peer_closed = False
        """The peer has sent a close frame."""

    def begin(self, transport: asyncio.Transport, session: Session) -> None:
        self._transport, self._session = transport, session
        unsent_bytes = self._rules.limits.unsent_bytes
        transport.set_write_buffer_limits(unsent_bytes, unsent_bytes // 4)

    # --- a Link -------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        self._write(BINARY, frame)

    def close(self, code: int, sentence: str) -> None:
        if not self._closing:
            reason = sentence.encode()[:REASON_BYTES].decode("utf-8", "ignore").encode()
            self._write(CLOSE, struct.pack(">H", code) + reason)
            self._closing = self._held = True
            self._partial = self._fragments = None
            if self._peer_closed or not self._transport.can_write_eof():
                self._transport.close()
            else:
                # close() with unread bytes would reset the connection, and the peer might never read the last frame.
                # So incoming bytes are read and dropped until the peer closes or the session cuts the connection.
                self._transport.write_eof()
                self._transport.resume_reading()

    def cut(self) -> None:
        self._transport.abort()

    def unsent(self) -> int:
        return self._transport.get_write_buffer_size()

    def hold(self) -> None:
        if not self._held:
            self._held = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        if self._closing:
            return
        self._held = False
        if self._partial is not None:
            self.take(memoryview(b""))
        if not self._held and not self._unread:
            self._transport.resume_reading()

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
        if nbytes > CHARGED_BYTES and not self._closing:
            self._session.charge_bytes(nbytes, self._rules.now())
            if nbytes == READ_BYTES:
                # The event loop would read again at once, up to 32 times in this turn.
                self._wait_turn()
        self.take(_incoming[:nbytes])

    def take(self, data: memoryview) -> None:
        """Bytes that arrived; an incomplete frame is kept."""
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

    def _wait_turn(self) -> None:
        """This connection has used its share of the turn: the others come first."""
        if not self._held:
            self.hold()
            self._rules.next_turn(self.read_on)

    def _parse(self, data: memoryview) -> int:
        """Handle the whole frames in `data`, up to a share of the turn; returns how many bytes they took."""
        at, size, rules = 0, len(data), self._rules
        for _ in rules.share:
            if size - at < 2 or self._held:
                break
            first, second = data[at], data[at + 1]
            length, start = second & LENGTH, at + 6
            if length >= 126:
                wide = 2 if length == 126 else 8
                if size - at < 2 + wide:
                    break
                length, start = int.from_bytes(data[at + 2 : at + 2 + wide], "big"), start + wide
            usual = first == WHOLE and second >= MASKED and length <= rules.small and self._fragments is None
            if not usual and (wrong := self._complaint(first, second, length)):
                self._session.close(wrong)
                break
            end = start + length
            if size < end:
                break
            payload = apply_mask(data[start:end], bytes(data[start - 4 : start]))
            at = end
            if first == WHOLE:
                self._session.receive(payload, rules.now())
            else:
                self._unusual(first, payload)
        else:
            if at < size:
                self._wait_turn()
        return at

    def _complaint(self, first: int, second: int, length: int) -> CloseCode | None:
        """What is wrong with a frame's header, before its payload is read."""
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
        limits = self._rules.limits
        limit = limits.frame_bytes if self._session.device else limits.hello_bytes
        if length + (len(self._fragments) if self._fragments is not None else 0) > limit:
            return CloseCode.TOO_LARGE
        return None

    def _unusual(self, first: int, payload: bytes) -> None:
        """Control frames, and messages in several frames."""
        opcode = first & OPCODE
        if not self._session.charge(self._rules.now()):
            return
        if opcode == PING:
            self._write(PONG, payload)
        elif opcode == CLOSE:
            self._peer_closed = True
            self._session.close(CloseCode.NORMAL)
        elif opcode != PONG:
            if self._fragments is None:
                self._fragments = bytearray()
            self._fragments += payload
            if first & FIN:
                message, self._fragments = self._fragments, None
                self._session.receive(message, self._rules.now())

    def pause_writing(self) -> None:
        # A device that does not read is not read from: its questions would only add to the unsent answers.
        self._unread = True
        if not self._closing:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._unread = False
        if not self._closing:
            if not self._held:
                self._transport.resume_reading()
            self._session.wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = self._held = True
        self._partial = self._fragments = None
        self._session.lost()
