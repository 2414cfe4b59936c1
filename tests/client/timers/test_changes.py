"""The timer of a conversation: the same on every device of both people."""

from __future__ import annotations

import pytest

from nightmail.client.errors import Misused
from nightmail.client.events import MessageFailed, TimerChanged
from nightmail.client.own_devices.controls import Control
from nightmail.e2ee.content import LIFE_MS_MAX, Content, encode_content
from nightmail.model.words import Kind
from tests.client.sealed_town import a_town
from tests.client.timers.talk import MINUTE, sets, texts, timed_talk, waits, writes
from tests.client.town import Device, Town


def timers(one: Device, other: Device, *more: Device) -> list[int]:
    return [
        one.machine.timer(other.me.account),
        other.machine.timer(one.me.account),
        *(each.machine.timer(other.me.account) for each in more),
    ]


def test_a_change_reaches_everybody_and_stands_in_every_history() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    change = sets(bob, alice, MINUTE)
    town.settle()
    assert timers(alice, bob, laptop) == [MINUTE] * 3
    at = [each.store.history(peer.me.account, 9)[-1] for each, peer in ((alice, bob), (laptop, bob), (bob, alice))]
    assert [(each.id, each.timer_ms, each.kind) for each in at] == [(change.id, MINUTE, Kind.CONTROL)] * 3
    told = TimerChanged(change.id, bob.me.account, "bob", False, MINUTE, at[0].at)
    assert (alice.told(TimerChanged), laptop.told(TimerChanged)) == ([told], [told])
    sets(alice, bob, 0)
    town.settle()
    assert timers(alice, bob, laptop) == [0] * 3
    assert [event.own for event in laptop.told(TimerChanged)] == [False, True]


def test_of_two_changes_at_the_same_time_the_later_stamp_wins_on_every_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    alice.cut()
    bob.cut()
    sets(alice, bob, MINUTE)
    sets(bob, alice, 2 * MINUTE)
    assert (timers(alice, bob)[0], timers(alice, bob)[1]) == (MINUTE, 2 * MINUTE)
    bob.connect()
    town.settle(bob, laptop)
    alice.connect()
    town.settle()
    assert timers(alice, bob, laptop) == [MINUTE] * 3


def test_a_change_that_failed_counts_nowhere() -> None:
    town, (alice, bob) = timed_talk()
    alice.cut()
    change = sets(alice, bob, 2 * MINUTE)
    assert alice.machine.timer(bob.me.account) == 2 * MINUTE
    assert alice.machine.give_up(change.id, town.now)
    alice.connect()
    town.settle()
    assert timers(alice, bob) == [MINUTE, MINUTE]
    assert [event.message_id for event in alice.told(MessageFailed)] == [change.id]


def test_a_change_holds_for_what_is_written_after_it_and_never_disappears() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    writes(alice, bob, "before")
    sets(alice, bob, MINUTE)
    writes(alice, bob, "after")
    town.settle()
    bob.read(alice)
    town.settle()
    waits(town, MINUTE)
    assert (texts(alice, bob), texts(bob, alice)) == (["before"], ["before"])
    assert timers(alice, bob) == [MINUTE, MINUTE]


def test_a_change_is_not_unread() -> None:
    _, (alice, bob) = timed_talk()
    assert bob.machine.mark_read(alice.me.account, bob.town.now) == 0


def test_a_device_that_is_linked_later_knows_every_timer() -> None:
    town, (alice, bob) = timed_talk()
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    assert timers(alice, bob, laptop) == [MINUTE] * 3
    (change,) = laptop.store.history(bob.me.account, 100)
    told = TimerChanged(change.id, bob.me.account, "bob", True, MINUTE, change.at)
    assert laptop.told(TimerChanged) == [told]
    writes(laptop, bob, "from the laptop")
    town.settle()
    waits(town, MINUTE)
    assert texts(laptop, bob) == texts(alice, bob) == []


@pytest.mark.parametrize("life_ms", [1, 29_999, LIFE_MS_MAX + 1, -1])
def test_a_timer_that_no_server_takes_is_refused_and_nothing_is_queued(life_ms: int) -> None:
    _, (alice, bob) = a_town("alice", "bob")
    with pytest.raises(Misused, match="30 seconds to 7 days"):
        sets(alice, bob, life_ms)
    with pytest.raises(Misused, match="30 seconds to 7 days"):
        writes(alice, bob, "too short", life_ms)
    assert alice.store.history(bob.me.account, 9) == []


@pytest.mark.parametrize("life_ms", [30_000, LIFE_MS_MAX])
def test_the_bounds_themselves_are_taken(life_ms: int) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    sets(alice, bob, life_ms)
    writes(alice, bob, "in bounds")
    town.settle()
    assert timers(alice, bob) == [life_ms] * 2
    assert texts(bob, alice) == ["in bounds"]


def forged(device: Device, to: Device, content: Content) -> None:
    device.machine.compose(to.me.account, encode_content(content), device.town.now, kind=Kind.CONTROL)
    device.look()


def test_a_change_to_what_cannot_be_and_another_persons_control_message_are_ignored() -> None:
    town: Town
    town, (alice, bob) = timed_talk()
    forged(bob, alice, Content(Kind.CONTROL, control=Control.TIMER, life_ms=29_999))
    forged(bob, alice, Content(Kind.CONTROL, control=Control.TIMERS, data=b"\x90"))
    town.settle()
    assert alice.machine.timer(bob.me.account) == MINUTE
    assert len(alice.store.history(bob.me.account, 9)) == 1
