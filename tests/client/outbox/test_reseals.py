"""What cannot be opened is sealed again, bounded, and shown once in its place."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace

from nightmail.client.events import (
    MessageFailed,
    Unreadable,
)
from nightmail.client.messages import Message
from nightmail.client.outbox.reseals import ERRAND as MEND
from nightmail.client.store.rows import Missed
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.records import Sent
from nightmail.model.words import Kind, Lane
from tests.client.sealed_town import a_town, said_by
from tests.client.town import Device


def test_a_device_restored_from_an_old_state_is_healed_by_a_new_session_and_shows_everything_once() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.says(alice, "yes")
    town.settle()
    town.wait(3_700_000)
    town.settle()
    old = bob.store.peer(alice.me.device)
    assert old is not None
    for n in range(3):
        alice.says(bob, f"more {n}")
        bob.says(alice, f"and {n}")
        town.settle()
    bob.store.put_peer(alice.me.device, old)
    bob.store.commit()
    bob.crash()
    bob.connect()
    alice.says(bob, "do you read me?")
    town.settle()
    assert bob.heard() == ["one", "more 0", "more 1", "more 2", "do you read me?"]
    assert [row.healed for row in bob.store.missed()] == [True] * len(bob.told(Unreadable))


def test_a_device_restored_from_an_old_copy_sends_everything_under_numbers_that_are_free() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    alice.cut()
    waiting = alice.says(bob, "one")
    saved = copy.deepcopy(alice.store)
    alice.connect()
    for text in ("two", "three"):
        alice.says(bob, text)
        town.settle()
    alice.cut()
    alice.store = saved
    alice.crash()
    later = [alice.says(bob, f"after {n}") for n in range(5)]
    alice.connect()
    town.settle()
    town.wait(60_000)
    town.settle()
    assert {alice.state(message) for message in (waiting, *later)} == {"delivered"}
    assert sorted(bob.heard()) == sorted(["zero", "one", "two", "three", *(f"after {n}" for n in range(5))])


def lose_first_keys(device: Device, count: int) -> None:
    """The next that are handed out for it are no longer here."""
    keyring = device.machine.sealer.key_stock
    lost = sorted(keyring.keys.one_time)[:count]
    keyring.put(replace(keyring.keys, one_time={n: key for n, key in keyring.keys.one_time.items() if n not in lost}))
    device.look()


def test_a_first_session_that_cannot_work_is_replaced_at_once() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lose_first_keys(bob, 1)
    message = alice.says(bob, "hello")
    town.settle()
    assert (alice.state(message), bob.heard()) == ("delivered", ["hello"])


@pytest.mark.parametrize("lane", Lane)
def test_a_reseal_takes_the_high_lane_with_an_id_number_and_tag_of_its_own(lane: Lane) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lose_first_keys(bob, 1)
    alice.send(bob, encode_content(Content(Kind.TEXT, "hello")), lane=lane)
    town.settle()
    first, again = said_by(alice, Sent)
    assert (first.lane, first.n, first.of) == (lane, 1, None)
    assert (again.lane, again.n, again.of) == (Lane.HIGH, 2 if lane is Lane.HIGH else 1, first.id)
    assert again.id != first.id
    assert again.tag != first.tag
    assert bob.heard() == ["hello"]


@pytest.mark.parametrize("crashed", [False, True])
def test_a_message_is_not_sealed_again_and_again_in_a_session_that_cannot_work_but_waits_for_another(
    crashed: bool,
) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lose_first_keys(bob, 2)
    message = alice.says(bob, "hello")
    town.settle()
    assert (alice.state(message), bob.heard(), len(said_by(alice, Sent))) == ("sent", [], 2)
    if crashed:
        alice.crash()
        alice.connect()
        town.settle()
    town.wait(alice.limits.restart_ms)
    town.settle()
    assert (alice.state(message), bob.heard(), alice.store.errands(MEND)) == ("delivered", ["hello"], [])


def test_a_message_that_never_opens_has_failed_after_three_reseals() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lose_first_keys(bob, 100)
    message = alice.says(bob, "hello")
    for _ in range(4):
        town.settle()
        town.wait(alice.limits.restart_ms)
    town.settle()
    assert (alice.state(message), len(said_by(alice, Sent)), alice.store.errands(MEND)) == ("failed", 4, [])
    assert [failed.reason for failed in alice.told(MessageFailed)] == ["undecryptable"]


def test_what_could_not_be_opened_stands_where_it_stood_once_it_is_healed() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.says(alice, "yes")
    town.settle()
    town.wait(3_700_000)
    bob.cut()
    second = alice.says(bob, "two")
    town.settle()
    bob.store.drop_peer(alice.me.device)
    bob.store.commit()
    bob.crash()
    bob.connect()
    town.settle()
    third = alice.says(bob, "three")
    town.settle()
    assert [message.text for message in bob.store.history(alice.me.account, 9)] == ["one", "yes", "two", "three"]
    assert {alice.state(second), alice.state(third)} == {"delivered"}
    ours, theirs = alice.store.message(second.id), bob.store.message(second.id)
    assert ours is not None
    assert theirs is not None
    assert ours.at == theirs.at
    assert bob.store.missed() == [Missed(second.id, alice.me.device, bob.store.missed()[0].at, True)]


def test_an_own_device_that_cannot_open_its_copy_gets_it_again() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    alice.says(bob, "one")
    town.settle()
    town.wait(3_700_000)
    laptop.store.drop_peer(alice.me.device)
    laptop.store.commit()
    laptop.crash()
    laptop.connect()
    alice.says(bob, "two")
    town.settle()
    assert [m.text for m in laptop.told(Message) if m.own] == ["one", "two"]
