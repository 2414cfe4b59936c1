"""Live push, drain, pacing and the slow reader."""

from __future__ import annotations

from typing import TypeVar

from nightmail.gateway.limits import GatewayLimits
from nightmail.model.records import Acked, ReceiptsAcked
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from nightmail.wire.items import Ask, Drained, Entries, FromServer, Gone, Receipts
from tests.gateway.rig import (
    BEN,
    PHONE,
    TABLET,
    a_message,
    a_town,
    as_entry,
    greeted,
    numbers_of,
    shape,
    shapes,
)

NORMAL, HIGH = Lane.NORMAL, Lane.HIGH
T = TypeVar("T")


# --- draining ----------------------------------------------------------------------------------


def test_what_waits_comes_in_batches_of_a_hundred_as_far_as_credit_reaches() -> None:
    town = a_town()
    town.write(300)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "normal 1-100"], ["normal 101-200"], ["normal 201-256"]]
    ben.link.take()
    ben.ack(256)
    town.turn()
    assert shapes(ben.link.frames) == [["normal 257-300", "Drained"]]
    assert ben.link.frames[0][1] == Drained(300, 0, 0)


def test_queue_empty_is_said_once_and_only_when_everything_was_handed_out() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(25)
    ben = greeted(town)
    seen: list[FromServer] = []
    for upto in (10, 20, 25):
        items = ben.take()
        seen += items
        assert (Drained(25, 0, 0) in items) == (upto == 25)
        ben.ack(upto)
    town.write(5, first=26)
    seen += ben.take()
    assert [item for item in seen if isinstance(item, Drained)] == [Drained(25, 0, 0)]
    assert numbers_of(seen) == list(range(1, 31))


def test_a_device_that_has_everything_is_handed_nothing() -> None:
    town = a_town()
    town.write(3)
    ben = greeted(town, normal=3)
    assert [type(item).__name__ for item in ben.take()] == ["Welcome", "Drained"]


def test_what_the_device_has_is_not_handed_out_even_if_its_ack_was_lost() -> None:
    town = a_town()
    town.write(5)
    ben = greeted(town, normal=3)
    assert ben.numbers() == [4, 5]


def test_what_a_device_acknowledged_and_has_forgotten_is_a_gap() -> None:
    town = a_town()
    sent = town.write(3)
    at = town.clock
    town.fold(TABLET, Acked(NORMAL, 2))
    ben = greeted(town)
    assert ben.take()[1:] == [
        Gone(NORMAL, 1, 2, Reason.ACKNOWLEDGED),
        Entries(NORMAL, 3, (as_entry(sent[2], at + 2),)),
        Drained(3, 0, 0),
    ]


def test_the_high_lane_comes_first() -> None:
    town = a_town()
    town.write(3)
    town.write(2, lane=HIGH)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "high 1-2", "normal 1-3", "Drained"]]


def test_a_frame_brings_a_hundred_entries_of_both_lanes_together() -> None:
    town = a_town()
    town.write(90)
    town.write(90, lane=HIGH)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "high 1-90", "normal 1-10"], ["normal 11-90", "Drained"]]


def test_a_frame_of_large_entries_stays_well_below_the_limit() -> None:
    town = a_town()
    town.write(12, bytes(65_536))
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames)[:3] == [["Welcome", "normal 1-4"], ["normal 5-8"], ["normal 9-12", "Drained"]]
    assert max(ben.link.sizes) < GatewayLimits().frame_bytes / 2


def test_gaps_are_served_in_their_place() -> None:
    town = a_town()
    town.fold(PHONE, *(a_message(n, life_ms=1_000 if n in {2, 3, 5} else 0) for n in range(1, 7)))
    town.wait(2_100)
    ben = greeted(town)
    items = ben.take()
    start = town.clock - town.pace + 1_000
    e = {n: as_entry(a_message(n), at) for n, at in zip(range(1, 7), range(start, start + 6), strict=True)}
    assert items[1:] == [
        Entries(NORMAL, 1, (e[1],)),
        Gone(NORMAL, 2, 3, Reason.EXPIRED),
        Entries(NORMAL, 4, (e[4],)),
        Gone(NORMAL, 5, 5, Reason.EXPIRED),
        Entries(NORMAL, 6, (e[6],)),
        Drained(6, 0, 0),
    ]


def test_a_gap_uses_credit_until_it_is_acknowledged_like_an_entry() -> None:
    town = a_town(GatewayLimits(credit_entries=3))
    town.fold(PHONE, *(a_message(n, life_ms=1_000 if n <= 3 else 0) for n in range(1, 6)))
    town.wait(2_100)
    ben = greeted(town)
    assert ben.take()[1:] == [Gone(NORMAL, 1, 3, Reason.EXPIRED)]
    ben.ack(3)
    assert ben.numbers() == [4, 5]


# --- receipts ----------------------------------------------------------------------------------


def test_receipts_come_after_messages_and_before_queue_empty() -> None:
    town = a_town()
    town.write(3)
    town.fold(TABLET, Acked(NORMAL, 3), a_message(1, by=TABLET, to=PHONE))
    at = town.clock
    ada = town.stranger(PHONE)
    ada.hello()
    key = (PHONE, BEN, NORMAL, TABLET, MessageState.DELIVERED, 0)
    assert ada.take()[1:] == [
        Entries(NORMAL, 1, (as_entry(a_message(1, by=TABLET, to=PHONE), at, TABLET),)),
        Receipts((PendingReceipt(key, 1, at, Reason.NONE, [1, 3]),)),
        Drained(1, 0, 1),
    ]


def test_a_receipt_that_moves_on_comes_again_under_a_new_number() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    town.write(4)
    for upto in (2, 4):
        town.fold(TABLET, Acked(NORMAL, upto))
        town.turn()
    key = (PHONE, BEN, NORMAL, TABLET, MessageState.DELIVERED, 0)
    assert ada.take() == [
        Receipts((PendingReceipt(key, 1, town.clock, Reason.NONE, [1, 2]),)),
        Receipts((PendingReceipt(key, 2, town.clock, Reason.NONE, [1, 4]),)),
    ]
    ada.say(Ask(0, ReceiptsAcked(2)))
    town.turn()
    again = town.stranger(PHONE)
    again.hello(receipts=0)
    assert [type(item).__name__ for item in again.take()] == ["Welcome", "Drained"]


def test_more_receipts_than_a_batch_come_in_several() -> None:
    town = a_town(GatewayLimits(batch_entries=2))
    town.fold(PHONE, *(a_message(n, life_ms=1_000) for n in range(1, 6)))
    town.wait(2_100)
    ada = town.stranger(PHONE)
    ada.hello()
    town.turn()
    found = [len(item.receipts) for item in ada.link.take() if isinstance(item, Receipts)]
    assert found == [2, 2, 1]


# --- credit ------------------------------------------------------------------------------------


def test_a_device_that_never_acknowledges_gets_256_entries_and_no_more() -> None:
    town = a_town()
    ben = town.connect()
    for first in range(1, 1_001, 50):
        town.write(50, first=first)
    assert ben.numbers() == list(range(1, 257))
    town.wait(5_000)
    assert ben.numbers() == []


def test_a_device_that_never_acknowledges_gets_a_mebibyte_and_a_batch_and_no_more() -> None:
    town = a_town()
    ben = town.connect()
    town.write(200, bytes(16_384))
    handed = len(ben.numbers())
    limits = GatewayLimits()
    assert limits.credit_bytes <= handed * 16_384 <= limits.credit_bytes + limits.batch_bytes + 16_384
    ben.ack(handed)
    assert ben.numbers() == list(range(handed + 1, 2 * handed + 1))


def test_credit_comes_back_as_it_is_acknowledged() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    ben = town.connect()
    town.write(30)
    assert ben.numbers() == list(range(1, 11))
    ben.ack(4)
    assert ben.numbers() == list(range(11, 15))
    ben.ack(4)
    assert ben.numbers() == []


def test_nothing_is_read_for_a_device_that_does_not_read() -> None:
    town = a_town()
    ben = town.connect()
    ben.link.unsent_bytes = GatewayLimits().unsent_bytes + 1
    town.write(50)
    assert ben.take() == []
    ben.link.unsent_bytes = 0
    ben.session.wake()
    assert ben.numbers() == list(range(1, 51))


def test_a_window_that_one_device_has_used_up_is_nobody_elses() -> None:
    town = a_town(GatewayLimits(credit_entries=5))
    town.register("cy")
    ben = town.connect()
    ada = town.connect(PHONE)
    town.write(20)
    town.fold(TABLET, a_message(1, by=TABLET, to=PHONE))
    assert (ben.numbers(), ada.numbers()) == ([1, 2, 3, 4, 5], [1])


# --- pressure ----------------------------------------------------------------------------------


def test_under_pressure_what_waits_is_handed_out_at_a_hundred_per_second() -> None:
    town = a_town()
    town.write(500)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    counts: list[int] = []
    for _ in range(6):
        got = ben.numbers()
        counts.append(len(got))
        if got:
            ben.ack(got[-1])
        town.wait(1_000)
    assert sum(counts) == 500
    assert max(counts) <= 102
    assert ben.numbers() == []


def test_a_few_entries_do_not_wait_for_a_whole_batch_of_pace() -> None:
    town = a_town()
    town.write(5)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    assert [shape(item) for item in ben.take()] == ["Welcome", "normal 1-5", "Drained"]


def test_under_pressure_live_traffic_goes_on_as_ever() -> None:
    town = a_town()
    ben = town.connect()
    town.gateway.press(0, 1_000)
    for n in range(1, 301):
        town.write(1, first=n)
        assert ben.numbers() == [n]
        ben.ack(n)


def test_when_the_pressure_ends_so_does_the_pace() -> None:
    town = a_town()
    town.write(250)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    assert len(ben.numbers()) == 100
    town.gateway.press(0, 0)
    town.wait(20)
    assert len(ben.numbers()) == 150
