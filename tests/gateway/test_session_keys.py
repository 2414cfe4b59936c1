"""Keys over the line: published, claimed, claimed too fast, and asked for when few are left."""

from __future__ import annotations

import msgspec

from nightmail.gateway.budgets import COUNTED
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.rates import per_minute
from nightmail.model.answers import Bundle, Joined, Stocked
from nightmail.model.forms import key_id
from nightmail.model.ids import account_id, account_of, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Claimed, Linked
from nightmail.model.refusals import Malformed, NoKeys, RateLimited
from nightmail.model.words import Platform
from nightmail.wire.frames import encode
from nightmail.wire.items import Answered, Ask, KeysLow
from tests.gateway.rig import PHONE, TABLET, TICK_MS, Phone, Town, a_town, shape, some_keys

EVE = device_id(account_id("eve"), 1)


def bundles(phone: Phone) -> list[int]:
    """The ids of the one-time keys that came."""
    found: list[int] = []
    for item in phone.take():
        if isinstance(item, Answered) and isinstance(item.said, Bundle):
            assert item.said.one_time is not None
            found.append(key_id(item.said.one_time))
    return found


# --- asked for --------------------------------------------------------------------------------


def test_a_device_without_keys_is_asked_for_them_right_after_welcome() -> None:
    town = Town()
    town.register("ben", with_keys=False)
    ben = town.stranger()
    ben.hello()
    assert [shape(item) for item in ben.take()] == ["Welcome", "KeysLow", "Drained"]
    ben.ask(some_keys(20, 5))
    assert ben.take() == [Answered(1, Stocked(20, 5))]
    again = town.stranger()
    again.hello()
    assert [shape(item) for item in again.take()] == ["Welcome", "Drained"]


def test_a_device_is_asked_for_more_when_few_are_left_and_once() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.ask(Claimed(TABLET, 1))
    assert bundles(ada) == [1]
    assert ben.take() == [KeysLow()]
    ada.ask(Claimed(TABLET, 2))
    assert (bundles(ada), ben.take()) == ([2], [])
    again = town.stranger()
    again.hello()
    assert [shape(item) for item in again.take()] == ["Welcome", "KeysLow", "Drained"]
    again.ask(some_keys(100, 20, first=21))
    assert again.take() == [Answered(1, Stocked(118, 23))]
    ada.ask(Claimed(TABLET, 3))
    assert (bundles(ada), again.take()) == ([3], [])


def test_a_device_that_is_away_hears_it_when_it_comes() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.ask(Claimed(TABLET, 1))
    assert bundles(ada) == [1]
    ben = town.stranger()
    ben.hello()
    assert [shape(item) for item in ben.take()] == ["Welcome", "KeysLow", "Drained"]


# --- claimed ----------------------------------------------------------------------------------


def test_a_claim_over_the_line_takes_one_key_and_a_repeat_takes_none() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.ask(Claimed(TABLET, 7), Claimed(TABLET, 8), Claimed(TABLET, 7))
    assert bundles(ada) == [1, 2, 1]


def test_a_malformed_upload_is_refused_and_the_connection_stays() -> None:
    town = a_town()
    ben = town.connect(TABLET)
    ben.ask(msgspec.structs.replace(some_keys(1, 1, first=50), signed=b""))
    assert ben.take() == [Answered(1, Malformed("signed is not 100 bytes"))]


def test_the_largest_upload_that_there_may_be_fits_into_a_frame() -> None:
    limits = FoldLimits()
    frame = encode([Ask(1, some_keys(limits.stock_one_time, limits.stock_kem))])
    assert len(frame) < 80_000 < GatewayLimits().frame_bytes
    town = Town()
    town.register("ben", with_keys=False)
    ben = town.connect(TABLET)
    ben.say_raw(frame)
    assert ben.take() == [Answered(1, Stocked(200, 40))]


def crowd(town: Town, count: int) -> list[int]:
    """Devices that have no keys: asking them takes nothing but a share."""
    handles = [f"person {number}" for number in range(count)]
    town.register(*handles, with_keys=False)
    return [device_id(account_id(handle), 1) for handle in handles]


def test_an_account_claims_a_hundred_times_a_minute_whatever_connection_it_comes_by() -> None:
    town = a_town(GatewayLimits(young_ms=TICK_MS))
    town.wait(TICK_MS)
    devices = crowd(town, 101)
    ada = town.connect(PHONE)
    ada.ask(*(Claimed(device, 1) for device in devices[:60]))
    assert [item.said for item in ada.take() if isinstance(item, Answered)] == [NoKeys(d) for d in devices[:60]]
    ada = town.connect(PHONE)
    ada.ask(*(Claimed(device, 1) for device in devices[60:]))
    said = [item.said for item in ada.take() if isinstance(item, Answered)]
    assert said == [RateLimited(601), *map(NoKeys, devices[60:100])]
    assert town.gateway.counters.claims_limited == 1
    ben = town.connect(TABLET)
    ben.ask(Claimed(devices[0], 1))
    assert ben.take() == [Answered(1, NoKeys(devices[0]))], "another account has its own share"
    town.wait(620)
    ada.ask(Claimed(devices[0], 2))
    assert [item.said for item in ada.take() if isinstance(item, Answered)] == [NoKeys(devices[0])]


def test_a_claim_without_an_answer_is_held_back_without_a_word() -> None:
    town = Town(GatewayLimits(claims_per_minute=1))
    town.register("ada", "ben")
    ada = town.connect(PHONE)
    ada.say(Ask(0, Claimed(TABLET, 1)), Ask(0, Claimed(TABLET, 2)), Ask(3, Claimed(TABLET, 3)))
    assert ada.take() == [Answered(3, RateLimited(60_001))]
    assert town.gateway.counters.claims_limited == 2


def test_an_account_links_so_many_devices_a_minute_whatever_connection_it_comes_by() -> None:
    town = Town(GatewayLimits(links_per_minute=2))
    town.register("ada", "ben")
    links = [Linked(account_of(PHONE), n, bytes([n]) * 32, "another", Platform.CLI) for n in range(1, 4)]
    ada = town.connect(PHONE)
    ada.ask(links[0])
    assert [type(item.said) for item in ada.take() if isinstance(item, Answered)] == [Joined]
    ada = town.connect(PHONE)
    ada.ask(*links[1:])
    said = [item.said for item in ada.take() if isinstance(item, Answered)]
    assert said == [RateLimited(30_001), Joined(PHONE + 2, 1)]
    assert (town.gateway.counters.links_limited, town.gateway.counters.claims_limited) == (1, 0)
    town.wait(30_001)
    ada.ask(links[2])
    assert [item.said for item in ada.take() if isinstance(item, Answered)] == [Joined(PHONE + 3, 1)]


# --- how much is remembered -------------------------------------------------------------------


def test_so_many_are_remembered_and_those_that_used_least_are_forgotten() -> None:
    shares = per_minute(2, most=3)
    for who in (1, 2, 3, 1, 4):  # 4 makes 2 forgotten, who had used least for longest
        assert shares.wait_ms(who, 0) == 0
    assert len(shares) == 3
    assert shares.wait_ms(1, 0) > 0
    assert [shares.wait_ms(2, 0) for _ in range(3)] == [0, 0, 30_001]
    assert COUNTED >= 10_000
