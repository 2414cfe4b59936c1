"""Device lists: asked for, found, and never too many at once."""

from __future__ import annotations

import pytest

from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.lookups import LISTS_AT_ONCE
from nightmail.model.limits import FormLimits
from nightmail.model.records import Closed, Listed
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.items import REF_MAX, Devices, FromServer, Goodbye, Look
from tests.gateway.rig import BEN, PHONE, TABLET, Phone, Town, a_town


def test_whom_to_seal_for_is_told() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.say(Look(5, BEN), Look(6, 12_345))
    assert ada.take() == [Devices(5, BEN, 1, {TABLET: 7}, b""), Devices(6, 12_345, 0, {}, b"")]


def test_an_account_that_ended_looks_like_none() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    town.fold(TABLET, Closed(BEN))
    ada.say(Look(5, BEN))
    assert ada.take() == [Devices(5, BEN, 0, {}, b"")]


@pytest.mark.parametrize("look", [Look(-1, BEN), Look(REF_MAX + 1, BEN), Look(1, 0), Look(1, 1 << 49)])
def test_a_look_out_of_range_ends_the_connection(look: Look) -> None:
    ada = a_town().connect(PHONE)
    ada.say(look)
    assert ada.link.closed == (CloseCode.MALFORMED, "no such ref or account")


def test_a_thousand_looks_at_long_lists_come_in_frames_that_stay_small() -> None:
    town = a_town(GatewayLimits(looks_burst=1_000))
    signed = bytes(FormLimits().list_bytes)
    town.fold(TABLET, Listed(BEN, 2, (TABLET,), signed))
    ada = town.connect(PHONE)
    ada.say(*(Look(ref, BEN) for ref in range(1, 1_001)))
    ada.link.unsent_bytes = 1 << 20
    town.turn()
    assert ada.link.frames == []
    ada.link.unsent_bytes = 0
    ada.session.wake()
    town.turn()
    assert max(ada.link.sizes) < GatewayLimits().frame_bytes
    assert ada.link.take() == [Devices(ref, BEN, 2, {TABLET: 7}, signed) for ref in range(1, 1_001)]


def test_too_many_looks_are_not_looked_at_before_they_are_counted() -> None:
    town = a_town(GatewayLimits(items_burst=20))
    town.fold(TABLET, Listed(BEN, 2, (TABLET,), bytes(65_536)))
    ada = town.connect(PHONE)
    ada.say(*(Look(ref, BEN) for ref in range(1, 22)))
    assert ada.link.closed == (CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST])
    assert ada.link.take() == [Goodbye(CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST], 0)]


def a_slow_town() -> tuple[Town, Phone]:
    """Ada is connected, and no other account is in memory or read at once."""
    town = a_town()
    town.loop.save(at_once=True)
    again = Town(log=town.log, rows=town.rows)
    ada = again.connect(PHONE)
    again.rows.holds_loads = True
    return again, ada


def test_lists_that_must_be_read_first_come_when_they_are_read_a_few_per_frame() -> None:
    town, ada = a_slow_town()
    accounts = range(1_000, 1_000 + 2 * LISTS_AT_ONCE + 1)
    ada.say(*(Look(ref, account) for ref, account in enumerate(accounts, 1)))
    town.turn()
    sizes: list[int] = []
    while town.rows.loads:
        assert ada.link.frames == []
        while town.rows.loads:
            town.rows.answer_load()
        town.turn()
        sizes += map(len, ada.link.frames)
        assert all(isinstance(item, Devices) for item in ada.link.take())
    assert (max(sizes), sum(sizes)) == (LISTS_AT_ONCE, len(accounts))


def test_questions_that_arrive_while_others_are_answered_wait_for_them() -> None:
    town, ada = a_slow_town()
    ada.say(Look(1, BEN))
    town.turn()
    ada.say(Look(2, 12_345))
    town.turn()
    assert ada.link.take() == []
    town.rows.holds_loads = False
    town.rows.answer_load()
    town.turn()
    assert ada.link.take() == [Devices(1, BEN, 1, {TABLET: 7}, b""), Devices(2, 12_345, 0, {}, b"")]


def test_a_list_that_is_found_after_the_connection_ended_goes_nowhere() -> None:
    town, ada = a_slow_town()
    ada.say(Look(1, BEN), Look(2, 12_345))
    town.turn()
    ada.session.lost()
    town.rows.holds_loads = False
    town.rows.answer_load()
    town.turn()
    assert ada.link.frames == []


def refs(items: list[FromServer]) -> list[int]:
    return [item.ref for item in items if isinstance(item, Devices)]


def test_looks_above_the_rate_wait_and_a_reconnect_changes_nothing() -> None:
    town = a_town(GatewayLimits(looks_per_s=10, looks_burst=3))
    ada = town.connect(PHONE)
    ada.say(*(Look(ref, BEN) for ref in range(1, 6)))
    assert refs(ada.take()) == [1, 2, 3]
    town.wait(140)
    assert refs(ada.link.take()) == [4]
    again = town.connect(PHONE)
    again.say(Look(9, BEN))
    assert refs(again.take()) == []
    town.wait(140)
    assert refs(again.link.take()) == [9]


def test_an_unknown_account_costs_as_much_as_ten() -> None:
    town = a_town(GatewayLimits(looks_per_s=10, looks_burst=20))
    ada = town.connect(PHONE)
    ada.say(Look(1, 12_345), Look(2, 12_346), Look(3, 12_347))
    ada.take()
    ada.say(Look(4, BEN))
    assert refs(ada.take()) == []
    town.wait(900)
    assert refs(ada.link.take()) == []
    town.wait(400)
    assert refs(ada.link.take()) == [4]


def test_a_device_that_has_too_many_looks_waiting_is_sent_away() -> None:
    town = a_town(GatewayLimits(looks_burst=1, items_burst=20, items_per_s=1_000))
    ada = town.connect(PHONE)
    ada.say(*(Look(ref, BEN) for ref in range(1, 20)))
    ada.take()
    town.wait(20)
    ada.say(*(Look(ref, BEN) for ref in range(1, 10)))
    assert ada.link.closed == (CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST])
