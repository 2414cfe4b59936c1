"""RFC 6455 over a real socket, spoken well and badly."""

from __future__ import annotations

import asyncio
import gc
import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.gateway.limits import LINGER_MS, GatewayLimits
from nightmail.gateway.pump import Pump
from nightmail.gateway.session import Session
from nightmail.gateway.websocket import READ_BYTES, WebSocket, WebSocketRules
from nightmail.model.records import Acked
from nightmail.model.words import Lane
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import encode
from nightmail.wire.items import Ask, Entries, Goodbye, Ping, Pong
from tests.gateway.quay import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Ended,
    Quay,
    Raw,
    at_the_quay,
    hello,
    masked,
)
from tests.gateway.rig import PHONE, TABLET, Town, a_message, a_town


def ended(code: CloseCode) -> Ended:
    return Ended(code, SENTENCES[code])


# --- spoken well ------------------------------------------------------------------------------


def test_a_message_in_many_fragments_with_a_ping_between_is_one_frame() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.upgrade()
        data = hello()
        await ben.say(masked(data[:5], fin=False) + masked(b"", CONTINUATION, fin=False))
        await ben.say(masked(b"are you there?", PING))
        assert await ben.frame() == (0x80 | PONG, b"are you there?")
        for at in range(5, len(data)):
            await ben.say(masked(data[at : at + 1], CONTINUATION, fin=at == len(data) - 1))
        assert [type(item).__name__ for item in await ben.items()] == ["Welcome", "Drained"]

    at_the_quay(story)


def test_many_messages_in_one_segment_and_one_in_many_segments_are_the_same() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(masked(encode([Ping(1)])) + masked(encode([Ping(2)])) + masked(encode([Ping(3)])))
        assert await ben.items() == [Pong(nonce, quay.clock) for nonce in (1, 2, 3)]
        for byte in masked(encode([Ping(4)])):
            await ben.say(bytes((byte,)))
            await asyncio.sleep(0)
        assert await ben.items() == [Pong(4, quay.clock)]

    at_the_quay(story)


@pytest.mark.parametrize("size", [125, 126, 127, 65_535, 65_536])
def test_every_way_to_write_a_length_is_understood_and_used(size: int) -> None:
    async def story(quay: Quay) -> None:
        ada, ben = await quay.raw(), await quay.raw()
        await ada.greet(PHONE)
        await ben.greet()
        await ada.say(masked(encode([Ask(0, a_message(1, bytes(size)))])))
        (entries,) = await ben.items()
        assert isinstance(entries, Entries)
        assert entries.entries[0].ciphertext == bytes(size)

    at_the_quay(story)


def test_who_closes_is_answered_with_a_close() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(masked(struct.pack(">H", 1000), CLOSE))
        assert await ben.items() == [Goodbye(CloseCode.NORMAL, SENTENCES[CloseCode.NORMAL], 0)]
        assert await ben.end() == ended(CloseCode.NORMAL)
        assert quay.gateway.connections == 0

    at_the_quay(story)


def test_a_pong_nobody_asked_for_is_nothing() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(masked(b"?", PONG) + masked(encode([Ping(1)])))
        assert await ben.items() == [Pong(1, quay.clock)]

    at_the_quay(story)


# --- spoken badly -----------------------------------------------------------------------------

PING_1 = encode([Ping(1)])

BAD = {
    "a text message": (masked(b"hello", TEXT), CloseCode.NOT_BINARY),
    "not masked": (b"\x82\x01\x90", CloseCode.PROTOCOL),
    "compressed (RSV1)": (masked(PING_1, reserved=0x40), CloseCode.PROTOCOL),
    "RSV2": (masked(PING_1, reserved=0x20), CloseCode.PROTOCOL),
    "RSV3": (masked(PING_1, reserved=0x10), CloseCode.PROTOCOL),
    "an unknown opcode": (masked(PING_1, 0x3), CloseCode.PROTOCOL),
    "an unknown control opcode": (masked(b"", 0xB), CloseCode.PROTOCOL),
    "a control frame in fragments": (masked(b"", PING, fin=False), CloseCode.PROTOCOL),
    "a long control frame": (masked(bytes(126), PING), CloseCode.PROTOCOL),
    "the end of a message that never began": (masked(PING_1, CONTINUATION), CloseCode.PROTOCOL),
    "a message inside another": (masked(PING_1, fin=False) + masked(PING_1), CloseCode.PROTOCOL),
    "2 ** 63 bytes announced": (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", CloseCode.TOO_LARGE),
    "a mebibyte and a byte": (b"\x82\xff" + struct.pack(">Q", 1_048_577), CloseCode.TOO_LARGE),
    "a byte too much in fragments": (
        masked(bytes(65_536), fin=False) + b"\x80\xff" + struct.pack(">Q", 1_048_576 - 65_535),
        CloseCode.TOO_LARGE,
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_not_websocket_as_agreed_is_answered_with_why_and_disturbs_nobody(what: str) -> None:
    data, code = BAD[what]

    async def story(quay: Quay) -> None:
        ada, ben = await quay.raw(), await quay.raw()
        await ada.greet(PHONE)
        await ben.greet()
        await ben.say(data)
        assert await ben.end() == ended(code)
        await ada.say(masked(encode([Ping(1)])))
        assert await ada.items() == [Pong(1, quay.clock)]
        assert quay.gateway.connections == 1

    at_the_quay(story)


def test_whoever_goes_on_sending_what_is_too_large_still_hears_why() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        sending = asyncio.create_task(ben.say(b"\x82\xff" + struct.pack(">Q", 64 << 20) + bytes(16 << 20)))
        assert await ben.end() == ended(CloseCode.TOO_LARGE)
        ben.hang_up()
        await asyncio.gather(sending, return_exceptions=True)

    at_the_quay(story)


def test_a_stranger_may_send_four_kibibytes_at_once_and_no_more() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.upgrade()
        await ben.say(b"\x82\xfe" + struct.pack(">H", 4_097))
        assert await ben.end() == ended(CloseCode.TOO_LARGE)

    at_the_quay(story)


async def go_on(raw: Raw) -> None:
    while True:
        await raw.say(bytes(1_024))
        await asyncio.sleep(0)


def of_connections(*, besides: list[object]) -> list[object]:
    """Parts of connections that are in memory, without those that earlier tests have left in it."""
    earlier = {id(each) for each in besides}
    parts = {WebSocket, Session, Pump}
    return [each for each in gc.get_objects() if type(each) in parts and id(each) not in earlier]


@pytest.mark.parametrize("says_goodbye", [False, True])
def test_a_connection_that_is_gone_leaves_nothing_for_the_collector(says_goodbye: bool) -> None:
    gc.collect()
    earlier = of_connections(besides=[])

    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        assert {type(each) for each in of_connections(besides=earlier)} == {WebSocket, Session, Pump}
        if says_goodbye:
            await ben.say(masked(b"", TEXT))
            assert await ben.end() == ended(CloseCode.NOT_BINARY)
        ben.hang_up()
        await quay.until(lambda: quay.gateway.connections == 0)
        # Timers are never cancelled: the last one of a connection is set for its next heartbeat.
        quay.wait(GatewayLimits().heartbeat_ms)
        await quay.until(lambda: not of_connections(besides=earlier))

    gc.disable()
    try:
        at_the_quay(story)
    finally:
        gc.enable()


def test_who_does_not_hang_up_after_the_goodbye_is_cut_off() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(masked(b"", TEXT))
        assert await ben.end() == ended(CloseCode.NOT_BINARY)
        # Our side is still open: what we say goes nowhere.
        await ben.say(masked(encode([Ping(1)])))
        quay.wait(LINGER_MS + 100)
        with pytest.raises(ConnectionError):
            await go_on(ben)

    at_the_quay(story)


def test_a_connection_that_breaks_inside_a_frame_is_forgotten() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(masked(encode([Ping(1)]))[:-1])
        ben.hang_up()
        await quay.until(lambda: quay.gateway.connections == 0)
        assert quay.registry.seat_of(TABLET, quay.pace) is None

    at_the_quay(story)


# --- slow readers -----------------------------------------------------------------------------


def test_a_device_that_does_not_read_is_not_listened_to_and_costs_bounded_memory() -> None:
    async def story(quay: Quay) -> None:
        limits = quay.gateway.shared.limits
        ada, ben = await quay.raw(), await quay.raw()
        await ada.greet(PHONE)
        await ben.greet()
        ben.reader._transport.pause_reading()  # type: ignore[attr-defined]
        flood = asyncio.create_task(ben.say(masked(bytes(125), PING) * 200_000))
        session = quay.gateway._live[TABLET]
        assert isinstance(session, Session)
        await quay.until(lambda: session.link.unsent() > limits.unsent_bytes)
        for _ in range(1_000):
            await asyncio.sleep(0)
        # What one read brought may be answered beyond the limit; after that nothing is read.
        assert session.link.unsent() <= 3 * limits.unsent_bytes
        assert not flood.done()
        await ada.say(masked(encode([Ping(1)])))
        assert await ada.items() == [Pong(1, quay.clock)]
        ben.hang_up()
        await asyncio.gather(flood, return_exceptions=True)
        await quay.until(lambda: quay.gateway.connections == 1)

    at_the_quay(story, GatewayLimits(items_burst=1_000_000, bytes_burst=1_000_000_000))


def test_a_device_that_reads_again_gets_everything_that_waits() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        ben.reader._transport.pause_reading()  # type: ignore[attr-defined]
        quay.write(40, bytes(60_000))
        for _ in range(100):
            await asyncio.sleep(0)
        ben.reader._transport.resume_reading()  # type: ignore[attr-defined]
        got = 0
        while got < 40:
            for item in await ben.items():
                assert isinstance(item, Entries)
                assert (item.lane, item.first) == (Lane.NORMAL, got + 1)
                got += len(item.entries)
            await ben.say(masked(encode([Ask(0, Acked(Lane.NORMAL, got))])))

    at_the_quay(story)


# --- however the bytes are cut ----------------------------------------------------------------


class Wire(asyncio.Transport):
    """A transport that takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None: ...

    def abort(self) -> None: ...


def talk(pieces: list[bytes], limits: GatewayLimits | None = None) -> bytes:
    """What the server says to these bytes, coming in these pieces."""
    town = a_town(limits)
    gateway = town.gateway
    link, wire = WebSocket(WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)), Wire()
    link.begin(wire, gateway.open(link))
    for piece in (masked(hello()), *pieces):
        link.take(memoryview(piece))
        town.turn()
    return bytes(wire.written)


# --- what a connection may cost its neighbours ------------------------------------------------

FRAMES = {
    "an empty array": masked(encode([])),
    "a ping": masked(b"", PING),
    "a pong": masked(b"", PONG),
    "a fragment without bytes": masked(b"", CONTINUATION, fin=False),
}


def live(limits: GatewayLimits, device: int = TABLET) -> tuple[Town, WebSocket, Wire]:
    """A device that is live on a transport of the test's."""
    town = a_town(limits)
    gateway = town.gateway
    link, wire = WebSocket(WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)), Wire()
    link.begin(wire, gateway.open(link))
    link.take(memoryview(masked(hello(device))))
    town.turn()
    return town, link, wire


@pytest.mark.parametrize("what", FRAMES)
def test_a_frame_that_brings_nothing_counts_like_an_item(what: str) -> None:
    frame = FRAMES[what]
    town, link, _ = live(GatewayLimits(items_per_s=1, items_burst=20))
    if frame[0] == CONTINUATION:
        link.take(memoryview(masked(b"", fin=False)))
    link.take(memoryview(frame * 18))
    town.turn()
    assert town.gateway.connections == 1
    link.take(memoryview(frame * 3))
    town.turn()
    assert town.gateway.connections == 0


@pytest.mark.parametrize("what", ["a ping", "a pong", "a fragment without bytes"])
def test_before_the_hello_only_so_many_frames_are_taken(what: str) -> None:
    async def story(quay: Quay) -> None:
        stranger = await quay.raw()
        await stranger.upgrade()
        if FRAMES[what][0] == CONTINUATION:
            await stranger.say(masked(b"", fin=False))
        await stranger.say(FRAMES[what] * 11)
        assert await stranger.end() == ended(CloseCode.TOO_FAST)

    at_the_quay(story, GatewayLimits(hello_frames=10))


def test_a_connection_gets_so_many_frames_in_one_turn_and_is_not_read_from_until_the_next() -> None:
    town, link, wire = live(GatewayLimits(turn_frames=4))
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        seen.append((wire.written.count(b"\x8a\x01p"), wire.reading))

    link.take(memoryview(masked(b"p", PING) * 10))
    look()
    while town.turn_once():
        look()
    assert seen == [(4, False), (8, False), (10, True)]


def test_those_who_have_more_than_their_share_take_turns() -> None:
    town, first, _ = live(GatewayLimits(turn_frames=2, drains_at_once=1))
    order: list[str] = []
    town.gateway.turns.next_turn(lambda: order.append("before"))
    first.take(memoryview(masked(encode([Ping(1)])) * 5))
    town.gateway.turns.next_turn(lambda: order.append(f"behind, at {town.gateway.counters.frames_in}"))
    town.turn()
    # Hello, the first share, the second share; the last frame comes after who waits behind.
    assert (order, town.gateway.counters.frames_in) == (["before", "behind, at 5"], 6)


def test_a_peer_that_does_not_read_is_not_read_from_when_its_turn_comes() -> None:
    town, link, wire = live(GatewayLimits(turn_frames=1))
    link.take(memoryview(masked(b"p", PING) * 2))
    link.pause_writing()
    town.turn()
    paused = wire.reading
    link.resume_writing()
    assert (paused, wire.reading) == (False, True)


def test_a_read_that_fills_the_buffer_ends_the_turn_of_its_connection() -> None:
    town, link, wire = live(GatewayLimits())
    link.get_buffer(-1)[:] = masked(bytes(2 * READ_BYTES))[:READ_BYTES]
    link.buffer_updated(READ_BYTES)
    read_on = wire.reading
    town.turn()
    assert (read_on, wire.reading) == (False, True)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[low:high] for low, high in pairwise(bounds)]


PINGS = b"".join(
    masked(encode([Ping(nonce)])[:2], fin=False) + masked(b"p", PING) + masked(encode([Ping(nonce)])[2:], CONTINUATION)
    for nonce in range(3)
) + masked(b"\xff")


@given(st.lists(st.integers(0, 10**6), max_size=30))
@settings(max_examples=50)
def test_however_the_bytes_are_cut_the_same_is_said(places: list[int]) -> None:
    def pongs(said: bytes) -> list[bytes]:
        return said.split(b"\x8a\x01p")

    assert b"".join(pongs(talk(cut(PINGS, places)))).count(b"\x93\x08") == 3
    assert len(pongs(talk(cut(PINGS, places)))) == 4


@given(st.lists(st.one_of(st.binary(max_size=40), st.builds(masked, st.binary(max_size=40), st.integers(0, 15)))))
@settings(max_examples=200)
def test_whatever_bytes_come_nothing_raises(pieces: list[bytes]) -> None:
    talk(pieces)


def test_every_bit_of_a_frame_turned_around_ends_or_goes_on_but_never_raises() -> None:
    frame = masked(encode([Ping(7), Ask(1, a_message(1, by=TABLET, to=PHONE))]))
    for at in range(len(frame) * 8):
        turned = bytearray(frame)
        turned[at // 8] ^= 1 << at % 8
        talk([bytes(turned), masked(PING_1, BINARY)])
