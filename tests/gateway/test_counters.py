"""Every figure of the gateway moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nightmail.gateway.counters import Counters, Refusals
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.ids import account_of
from nightmail.model.records import Claimed, Linked
from nightmail.model.words import Platform
from nightmail.wire.frames import encode
from nightmail.wire.items import Ask, Foreground, GroupLook, LogFetch, Peek, Ping, Typing, Watch
from tests.gateway.group_rig import GROUP, a_group_town
from tests.gateway.rig import ADA, BEN, PHONE, TABLET, Town, a_message, a_town, befriend

FEW = GatewayLimits(
    claims_per_minute=1, links_per_minute=1, sends_burst=1, strangers=1, connects_burst=1, address_requests_burst=1
)
PING = encode([Ping(1)])


def connect(town: Town) -> None:
    town.connect()


def connect_twice(town: Town) -> None:
    town.connect()
    town.connect()


def disconnect(town: Town) -> None:
    town.connect().session.lost()


def claim_twice(town: Town) -> None:
    ada = town.connect(PHONE)
    ada.ask(Claimed(TABLET, 1), Claimed(TABLET, 2))
    ada.take()


def link_twice(town: Town) -> None:
    ada = town.connect(PHONE)
    ada.ask(*(Linked(account_of(PHONE), 7, bytes([n]) * 32, "tablet", Platform.CLI) for n in (1, 2)))
    ada.take()


def send_garbage(town: Town) -> None:
    town.connect().say_raw(b"\xff")


def send_two(town: Town) -> None:
    ada = town.connect(PHONE)
    ada.say(Ask(1, a_message(1)), Ask(2, a_message(2)))
    ada.take()


def knock_twice(town: Town) -> None:
    town.gateway.admit()
    town.gateway.admit()


def ask_twice(town: Town) -> None:
    town.gateway.admission.request_wait_ms("192.0.2.1")
    town.gateway.admission.request_wait_ms("192.0.2.1")


def ping_too_often(town: Town) -> None:
    town.connect().say(*(Ping(nonce) for nonce in range(10_000)))


def stand_there_twice(town: Town) -> None:
    town.stranger()
    town.stranger()


def acknowledge_nothing(town: Town) -> None:
    ben = town.connect()
    town.write(1)
    ben.take()
    town.wait(3_000)


def guess(town: Town) -> None:
    town.stranger().hello(token=b"a guess")
    town.turn()


def watch(town: Town) -> None:
    befriend(town)
    town.connect().say(Watch(1, (ADA,)))
    town.connect(PHONE).say(Foreground(True))


def ask_for_many(town: Town) -> None:
    ben = town.connect()
    ben.say(*(Peek(ref, tuple(range(1, 101))) for ref in range(1, 7)))


def type_twice(town: Town) -> None:
    befriend(town)
    town.connect().say(Foreground(True))
    town.connect(PHONE).say(Typing(BEN), Typing(BEN))


def ask_about_many_groups(town: Town) -> None:
    town.connect().say(*(GroupLook(ref, 2, 0) for ref in range(1, 100)))


def talk_in_a_large_group(_town: Town) -> Gateway:
    """In a town of its own, of the fold that knows groups."""
    town = a_group_town()
    for device in (PHONE, TABLET):
        phone = town.connect(device)
        phone.say(LogFetch(1, GROUP, 0, True))
        phone.take()
    town.say_in_group("hello")
    return town.gateway


STORIES: dict[str, Callable[[Town], Gateway | None]] = {
    "bytes_in": connect,
    "bytes_out": connect,
    "claims_limited": claim_twice,
    "closed": disconnect,
    "connected": connect,
    "displaced": connect_twice,
    "drained": connect,
    "frames_in": connect,
    "frames_out": connect,
    "group_entries_pushed": talk_in_a_large_group,
    "group_heads_told": talk_in_a_large_group,
    "groups_asked": ask_about_many_groups,
    "groups_limited": ask_about_many_groups,
    "links_limited": link_twice,
    "malformed": send_garbage,
    "not_admitted": knock_twice,
    "presence_limited": ask_for_many,
    "presence_told": watch,
    "rate_limited": send_two,
    "repeated": acknowledge_nothing,
    "requests_limited": ask_twice,
    "strangers_dropped": stand_there_twice,
    "submitted": send_two,
    "suspected": acknowledge_nothing,
    "too_fast": ping_too_often,
    "typing_limited": type_twice,
    "typing_passed": type_twice,
    "unauthorized": guess,
}


@pytest.mark.parametrize("name", Counters.__slots__)
def test_each_counter_moves(name: str) -> None:
    town = a_town(FEW)
    assert getattr(town.gateway.counters, name) == 0
    gateway = STORIES[name](town) or town.gateway
    town.turn()
    assert getattr(gateway.counters, name) > 0


def test_what_is_measured_now_moves_up_and_down() -> None:
    town = a_town()
    figures: list[tuple[int, int, bool]] = []

    def look() -> None:
        figures.append((town.gateway.connections, town.gateway.devices, town.gateway.pressed))

    look()
    ben = town.connect()
    town.stranger()
    town.gateway.press(lag_ms=51, commit_ms=0)
    look()
    ben.session.lost()
    town.gateway.press(lag_ms=0, commit_ms=101)
    look()
    town.gateway.press(lag_ms=50, commit_ms=100)
    look()
    assert figures == [(0, 0, False), (2, 1, True), (1, 0, True), (1, 0, False)]


def test_frames_and_their_bytes_are_counted_before_and_after_the_hello() -> None:
    town = a_town()
    ben = town.connect()
    counters = town.gateway.counters
    frames, size = counters.frames_in, counters.bytes_in
    ben.say_raw(PING)
    ben.say_raw(PING)
    assert (frames, counters.frames_in - frames, counters.bytes_in - size) == (1, 2, 2 * len(PING))


def test_who_was_refused_is_told_once_by_network() -> None:
    counters = Counters()
    counters.refuse("malformed")
    for address in ("192.0.2.1", "2001:db8::1", "2001:db8::2"):
        counters.refuse("malformed", address)
    counters.refuse("not_admitted", "192.0.2.1", 5)
    found = {"malformed": Refusals(4, "2001:db8::/64", 2), "not_admitted": Refusals(5, "192.0.2.1", 5)}
    assert (counters.take_refusals(), counters.take_refusals(), counters.malformed) == (found, {}, 4)


def test_however_many_networks_are_refused_few_are_told_apart() -> None:
    counters = Counters()
    for number in range(10_000):
        counters.refuse("malformed", f"10.0.{number // 256}.{number % 256}")
    counters.refuse("malformed", "10.0.0.1")
    assert counters.take_refusals() == {"malformed": Refusals(10_001, "10.0.0.1", 2)}
