"""Why a connection ends: which codes come before a device is recognized, provoked one by one."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.websocket import CLOSE, FIN, PING, TEXT, WebSocket, WebSocketRules
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import encode
from nightmail.wire.items import Hello, Ping
from tests.gateway.quay import hello, masked
from tests.gateway.rig import PHONE, TABLET, Town, a_town, token_of
from tests.gateway.test_websocket import Wire
from tests.wire.protocol_page import table

LIMITS = GatewayLimits(hello_frames=3, address_strangers=1)
ADDRESS = "192.0.2.1"


def says(*frames: bytes) -> Callable[[Town, WebSocket], None]:
    def story(town: Town, link: WebSocket) -> None:
        link.take(memoryview(b"".join(frames)))
        town.turn()

    return story


def another_comes(town: Town, _: WebSocket) -> None:
    connect(town)


def the_server_stops(town: Town, _: WebSocket) -> None:
    town.gateway.stop(town.pace)
    town.wait(LIMITS.stop_ms + 20)


EARLY: dict[CloseCode, Callable[[Town, WebSocket], None]] = {
    CloseCode.NORMAL: says(masked(b"", CLOSE)),
    CloseCode.PROTOCOL: says(bytes((FIN | PING, 0, 0, 0, 0, 0))),
    CloseCode.NOT_BINARY: says(masked(b"hello", TEXT)),
    CloseCode.TOO_LARGE: says(b"\x82\xfe" + struct.pack(">H", LIMITS.hello_bytes + 1)),
    CloseCode.MALFORMED: says(masked(encode([Ping(1)]))),
    CloseCode.OUT_OF_STATE: says(masked(hello()) + masked(encode([Ping(1)]))),
    CloseCode.UNAUTHORIZED: says(masked(encode([Hello(1, TABLET, token_of(PHONE), 0, 0, 0)]))),
    CloseCode.UNSUPPORTED: says(masked(encode([Hello(2, TABLET, token_of(TABLET), 0, 0, 0)]))),
    CloseCode.HELLO_TIMEOUT: lambda town, _: town.wait(LIMITS.hello_ms + 20),
    CloseCode.DRAINING: the_server_stops,
    CloseCode.BUSY: another_comes,
    CloseCode.TOO_FAST: says(masked(b"", PING) * (LIMITS.hello_frames + 1)),
}


def connect(town: Town) -> tuple[WebSocket, Wire]:
    gateway = town.gateway
    link, wire = WebSocket(WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)), Wire()
    link.begin(wire, gateway.open(link, ADDRESS))
    return link, wire


@pytest.mark.parametrize("code", EARLY, ids=lambda code: code.name)
def test_before_the_welcome_a_connection_ends_with_a_close_frame_alone(code: CloseCode) -> None:
    town = a_town(LIMITS)
    link, wire = connect(town)
    EARLY[code](town, link)
    pongs = bytes((FIN | 0xA, 0)) * (LIMITS.hello_frames if code is CloseCode.TOO_FAST else 0)
    assert wire.written.startswith(pongs)
    end = wire.written[len(pongs) :]
    assert (end[0], end[1], struct.unpack(">H", end[2:4])[0]) == (FIN | CLOSE, len(end) - 2, code)


def test_the_page_says_which_codes_come_before_the_welcome() -> None:
    said = {row[0]: row[3] for row in table("Close codes")}
    assert said == {str(int(code)): "yes" if code in EARLY else "no" for code in CloseCode}
