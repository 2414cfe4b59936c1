"""Who holds which key, and who gets none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.client.events import Unreadable
from nightmail.client.groups import controls
from nightmail.client.groups.waiting import key_of
from nightmail.e2ee.errors import KeySpent
from nightmail.e2ee.groups.sealing import decode_group_message
from nightmail.e2ee.groups.sender_keys import MESSAGES_MAX, to_open
from nightmail.e2ee.identity import Address
from nightmail.e2ee.state import decode_receiving_chain
from nightmail.model.records import GroupSealed, GroupSent
from nightmail.model.roster import Removal
from nightmail.model.rows import GroupEntry
from nightmail.model.words import Kind, Lane
from tests.client.groups.town import a_group, a_town, add, change, texts, writes
from tests.client.sealed_town import said_by
from tests.client.town import Device


def address_of(device: Device) -> Address:
    return Address(device.me.device, device.me.registration)


def test_no_message_key_seals_twice() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    for text in ("one", "two", "three"):
        writes(ada, group, text)
        town.settle()
    sealed = [decode_group_message(sent.ciphertext) for sent in said_by(ada, GroupSent)]
    assert [message.number for message in sealed] == [0, 1, 2]
    assert not bob.told(Unreadable)


def test_a_newcomer_gets_the_chain_as_it_stands() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, ada, bob)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    add(town, ada, group, cleo)
    writes(ada, group, "three")
    town.settle()
    (state,) = cleo.store.receiving_chains(group, ada.me.device)
    with pytest.raises(KeySpent):
        to_open(decode_receiving_chain(state), 1, town.now)
    assert texts(cleo, group) == ["three"]


def test_a_removed_member_that_asks_gets_nothing() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, _, cleo = people
    group = a_group(town, *people)
    message = writes(ada, group, "before")
    town.settle()
    change(town, ada, group, Removal((cleo.me.account,)))
    writes(ada, group, "after")
    town.settle()
    groups, chain = ada.machine.groups(town.now), ada.machine.groups(town.now).keys.chain(group)
    assert chain is not None
    before = len(said_by(ada, GroupSealed))
    groups.seen_by.answer(group, address_of(cleo), controls.Wanted(chain.key_id, (message.id,), welcome=True))
    groups.keys.hand_on_again(group, address_of(cleo))
    ada.look()
    town.settle()
    assert len(said_by(ada, GroupSealed)) == before
    assert cleo.me.device not in [holder.device for holder in ada.store.holders(group)]


def test_what_was_meant_for_a_member_is_not_sealed_after_the_removal() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, _, cleo = people
    group = a_group(town, *people)
    message = writes(ada, group, "before")
    town.settle()
    change(town, ada, group, Removal((cleo.me.account,)))
    stored = ada.store.message(message.id)
    assert stored is not None
    ada.machine.parts.outbox.reseal_in_group(stored, address_of(cleo))
    ada.look()
    town.settle()
    sealed = [envelope.device for body in said_by(ada, GroupSealed) if body.of for envelope in body.envelopes]
    assert cleo.me.device not in sealed
    assert not ada.store.outgoing()


def test_one_key_is_asked_for_once() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    writes(ada, group, "before")
    town.settle()
    (state,) = bob.store.receiving_chains(group)
    chain = decode_receiving_chain(state)
    bob.store.drop_receiving_chain(group, chain.sender.device, chain.key_id)
    ada.cut()
    asked = len(said_by(bob, GroupSealed))
    ada.connect()
    for text in ("one", "two", "three"):
        writes(ada, group, text)
    for _ in range(3):
        ada.exchange()
    town.settle()
    # Once for the key; once for the messages that it did not open, because it opens what comes after it.
    assert len(said_by(bob, GroupSealed)) == asked + 2
    assert sorted(texts(bob, group)) == ["before", "one", "three", "two"]


def test_a_chain_is_replaced_after_a_thousand_messages() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    writes(ada, group, "first")
    town.settle()
    keys = ada.machine.groups(town.now).keys
    chain = keys.chain(group)
    assert chain is not None
    keys.put(replace(chain, number=MESSAGES_MAX))
    writes(ada, group, "second")
    town.settle()
    after = keys.chain(group)
    assert after is not None
    assert after.key_id != chain.key_id
    assert texts(bob, group) == ["first", "second"]


def test_once_everybody_holds_the_chain_a_message_brings_nothing_but_itself() -> None:
    town, people = a_town("ada", "bob", "cleo")
    group = a_group(town, *people)
    writes(people[0], group, "one")
    town.settle()
    handed = len(said_by(people[0], GroupSealed))
    for text in ("two", "three"):
        writes(people[0], group, text)
        town.settle()
    assert len(said_by(people[0], GroupSealed)) == handed
    assert len(said_by(people[0], GroupSent)) == 3
    assert texts(people[2], group) == ["one", "two", "three"]


def test_somebody_who_comes_later_gets_the_chain_before_the_next_message() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, ada, bob)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    assert add(town, ada, group, cleo) == group
    writes(ada, group, "three")
    town.settle()
    assert (texts(bob, group), texts(cleo, group)) == (["one", "two", "three"], ["three"])


def test_a_device_that_lacks_the_chain_is_handed_it_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    keys, handed = ada.machine.groups(town.now).keys, len(said_by(ada, GroupSealed))
    assert keys.is_held_by_all(group)
    keys.lacks(group, bob.me.device)
    assert not keys.is_held_by_all(group)
    writes(ada, group, "three")
    town.settle()
    assert len(said_by(ada, GroupSealed)) == handed + 1
    assert keys.is_held_by_all(group)


def test_the_chain_is_another_one_when_a_holder_has_left_however_often_it_was_used() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    keys = ada.machine.groups(town.now).keys
    before = keys.chain(group)
    assert change(town, ada, group, Removal((cleo.me.account,))) == group
    assert not keys.is_held_by_all(group)
    writes(ada, group, "three")
    town.settle()
    after = keys.chain(group)
    assert before is not None
    assert after is not None
    assert before.key_id != after.key_id
    assert (texts(bob, group), texts(cleo, group)) == (["one", "two", "three"], ["one", "two"])


def test_everything_that_waits_for_a_key_that_is_gone_is_sealed_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    writes(ada, group, "zero")
    town.settle()
    chain = ada.machine.groups(0).keys.chain(group)
    assert chain is not None
    bob.cut()
    for text in ("one", "two", "three"):
        writes(ada, group, text)
        town.settle()
    bob.store.drop_receiving_chain(group, ada.me.device, chain.key_id)
    ada.machine.groups(town.now).keys.drop(group)  # so it hands on this chain to nobody
    bob.connect()
    town.settle()
    assert texts(bob, group) == ["zero", "one", "two", "three"]


def test_nonsense_that_waits_keeps_nobody_from_asking_for_keys() -> None:
    entry = GroupEntry(1, 2, 1, "id", b"", Kind.TEXT, None, 1, 0, b"nonsense", 1, 1, Lane.NORMAL)
    assert key_of(entry) == b""
