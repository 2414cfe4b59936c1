"""Everything that reads what a peer wrote, as functions of bytes: each returns, or the fuzzer has found something.

hello, from_device, from_server   frames
forms                             records, once they can be read
websocket                         the bytes of a socket behind the handshake, through a session to the heart
door                              the bytes of a socket before it
stream                            a sealed stream, that nobody without its key can change
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.streams.stream import StreamCipher, StreamOpener, StreamSealer
from nightmail.gateway.door import Door
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.websocket import WebSocket, WebSocketRules
from nightmail.model.forms import Form
from nightmail.model.records import Record, decode_record, encode_record
from nightmail.model.refusals import Malformed
from nightmail.wire.frames import BadFrame, decode_from_device, decode_from_server, decode_hello, encode
from nightmail.wire.items import Ask, Hello, Ping
from tests.gateway.quay import HANDSHAKE, masked
from tests.gateway.rig import PHONE, TABLET, Town, a_message, token_of

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
TOWN_LASTS = 500
"""Inputs after which a town is torn down: what it keeps of them only grows."""

GREETING = masked(encode([Hello(1, TABLET, token_of(TABLET), 0, 0, 0)]))
FORM = Form()


class Wire(asyncio.Transport):
    """A transport that takes everything, and knows whether it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.ended = False
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "nothing follows the end"
        self.written += data

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True

    def resume_reading(self) -> None: ...


class Http(asyncio.Protocol):
    """Whoever takes what is no WebSocket."""

    def data_received(self, data: bytes) -> None:
        assert b"\r\n\r\n" in data, "only whole heads are handed over"


class Stage:
    """A town that is used for many inputs, but not for ever."""

    def __init__(self) -> None:
        self._town: Town | None = None
        self._used = 0

    def town(self) -> Town:
        if self._town is None or self._used >= TOWN_LASTS:
            self._town, self._used = Town(GatewayLimits(connects_per_s=10**9, connects_burst=10**9)), 0
            self._town.register("ada", "ben")
        self._used += 1
        return self._town


_stage = Stage()


# --- frames -----------------------------------------------------------------------------------


def hello(data: bytes) -> None:
    try:
        said = decode_hello(data)
    except BadFrame:
        return
    assert decode_hello(encode([said])) == said


def from_device(data: bytes) -> None:
    try:
        items = decode_from_device(data)
    except BadFrame:
        return
    assert decode_from_device(encode(items)) == items


def from_server(data: bytes) -> None:
    try:
        items = decode_from_server(data)
    except BadFrame:
        return
    assert decode_from_server(encode(items)) == items


def forms(data: bytes) -> None:
    """What passes goes into the log, and must come out of it as it was."""
    try:
        items = decode_from_device(data)
    except BadFrame:
        return
    for item in items:
        if isinstance(item, Ask):
            complaint = FORM.check(PHONE, item.body)
            if complaint is None:
                record = Record(PHONE, 1, item.body)
                assert decode_record(encode_record(record)) == record
            else:
                assert type(complaint) is Malformed


def session(data: bytes) -> None:
    """Two devices say the same, one after the other; it must come to rest, and answers must be frames."""
    town = _stage.town()
    phones = [town.connect(PHONE), town.connect(TABLET)]
    for phone in phones:
        phone.say_raw(data)
        town.turn()
    town.wait(200)
    for phone in phones:
        phone.session.lost()
    town.turn()
    assert (town.gateway.connections, town.gateway.devices) == (0, 0)


# --- sockets ----------------------------------------------------------------------------------


def _pieces(data: bytes) -> list[bytes]:
    """The first byte says how the rest is cut."""
    if not data:
        return []
    step, rest = data[0] & 0x7F, data[1:]
    return [rest[at : at + step] for at in range(0, len(rest), step)] if step else [rest]


def websocket(data: bytes) -> None:
    """A device that is live (first byte below 128), or a stranger."""
    town = _stage.town()
    gateway = town.gateway
    link, wire = WebSocket(WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)), Wire()
    link.begin(wire, gateway.open(link))
    if data and data[0] < 0x80:
        link.take(memoryview(GREETING))
        town.turn()
    for piece in _pieces(data):
        link.take(memoryview(piece))
        town.turn()
    link.connection_lost(None)
    town.turn()
    assert (town.gateway.connections, town.gateway.devices) == (0, 0)


def door(data: bytes) -> None:
    town = _stage.town()
    shared = town.gateway.shared
    rules = WebSocketRules(shared.limits, shared.pace, town.gateway.turns.next_turn)
    caller, wire = Door(town.gateway, lambda _: Http(), Proxies(), rules), Wire()
    caller.connection_made(wire)
    for piece in _pieces(data):
        protocol = wire.protocol or caller
        if isinstance(protocol, asyncio.BufferedProtocol):
            assert isinstance(protocol, WebSocket)
            protocol.take(memoryview(piece))
        elif isinstance(protocol, Door):
            protocol.data_received(piece)
        town.turn()
    if isinstance(wire.protocol, WebSocket):
        assert wire.written.startswith(b"HTTP/1.1 101 ")
        wire.protocol.connection_lost(None)
    else:
        caller.connection_lost(None)
    town.turn()
    assert town.gateway.connections == 0


# --- what a client stores elsewhere ------------------------------------------------------------

STREAM_KEY = bytes(range(32))
STREAM_CONTENT = b"sealed once" * 9_000


def sealed_stream() -> bytes:
    sealer = StreamSealer(STREAM_KEY)
    return sealer.head + b"".join(chunk.data for chunk in sealer.chunks([STREAM_CONTENT]))


def stream(data: bytes) -> None:
    """Nothing opens but what was sealed; and whatever the key's owner seals, padding is judged without an accident."""
    try:
        opened = b"".join(StreamOpener(STREAM_KEY).content(_pieces(b"\x70" + data)))
    except Rejected:
        pass
    else:
        assert opened == STREAM_CONTENT
    cipher = StreamCipher(STREAM_KEY)
    plaintext = data[:65_536] or b"\x80"
    try:
        opened = b"".join(StreamOpener(STREAM_KEY).content([cipher.head, cipher.seal(0, plaintext, is_last=True)]))
    except Rejected:
        return
    assert plaintext.startswith(opened + b"\x80")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "hello": hello,
    "from_device": from_device,
    "from_server": from_server,
    "forms": forms,
    "session": session,
    "websocket": websocket,
    "door": door,
    "stream": stream,
}


# --- where to begin ---------------------------------------------------------------------------


def frames(direction: str) -> list[bytes]:
    """The dumps of docs/protocol.md."""
    found = re.findall(rf"```hex {direction}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [bytes.fromhex("".join(line.partition("#")[0] for line in dump.splitlines())) for dump in found]


def seeds(target: str) -> list[bytes]:
    said = [*frames("from-device"), encode([Ask(1, a_message(1, by=TABLET, to=PHONE)), Ping(1)])]
    match target:
        case "from_server":
            return frames("from-server")
        case "websocket":
            parts = [
                masked(b"?", 0x9),
                masked(b"\x03\xe8", 0x8),
                masked(said[0][:5], fin=False) + masked(said[0][5:], 0),
            ]
            return [b"\0" + masked(each) for each in said] + [b"\x83" + GREETING, *(b"\5" + part for part in parts)]
        case "stream":
            return [sealed_stream(), b"text\x80".ljust(1_024, b"\0")]
        case "door":
            plain = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"
            return [b"\0" + HANDSHAKE, b"\x10" + HANDSHAKE + GREETING, b"\0" + plain, b"\1" + plain + plain]
        case _:
            return said
