"""Several devices of one account: linked by a code, and each with its part in everything."""

from __future__ import annotations

from nightmail.client.events import (
    DeviceLinked,
    Moved,
    Provisioned,
    ReadElsewhere,
    SecurityCodeChanged,
)
from nightmail.client.inbox.read_marks import READ_BEFORE
from nightmail.client.messages import Message
from nightmail.client.store.rows import Missed, ReadMark
from nightmail.model.records import Sent, Unlinked
from tests.client.sealed_town import a_town, said_by
from tests.client.town import START


def test_a_linked_device_is_told_whose_it_is_and_has_its_part_in_everything_from_then_on() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    assert (alice.told(DeviceLinked), laptop.told(Provisioned)) == ([DeviceLinked(laptop.me.device)], [Provisioned()])
    alice.says(bob, "from the phone")
    laptop.says(bob, "from the laptop")
    bob.says(alice, "to both")
    town.settle()
    assert sorted(bob.heard()) == ["from the laptop", "from the phone"]
    assert (alice.heard(), laptop.heard()) == (["to both"], ["to both"])
    assert [m.text for m in laptop.told(Message) if m.own] == ["from the phone"]


def test_a_device_whose_code_was_not_this_one_is_never_told_anything() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice, secret=b"another secret!!")
    laptop.connect()
    town.settle()
    bob.says(alice, "hello")
    town.settle()
    assert laptop.told(Provisioned) == laptop.heard() == []


def test_a_list_that_changes_under_way_is_sealed_for_the_new_device_and_nobody_else_anew() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle(bob, laptop)
    alice.says(bob, "two")
    (row,) = alice.store.outgoing()
    first = row.envelopes[bob.me.device]
    town.settle()
    last = said_by(alice, Sent)[-1]
    assert {envelope.device for envelope in last.envelopes} == {bob.me.device, laptop.me.device}
    assert first in last.envelopes
    assert (bob.heard(), laptop.heard()) == (["one", "two"], ["two"])


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


def test_what_was_read_on_one_device_is_not_new_on_another() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    message = bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    town.settle()
    assert laptop.told(ReadElsewhere) == [ReadElsewhere((message.id,))]
    assert laptop.store.marked(ReadMark.UNREAD) == []
    assert bob.state(message) == "read"


def test_what_was_read_elsewhere_before_it_came_is_not_new_when_it_comes() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    laptop.cut()
    bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    town.settle()
    laptop.connect()
    town.settle()
    assert laptop.heard() == ["one"]
    assert laptop.store.marked(ReadMark.UNREAD) == []
    assert laptop.store.errands("read ") == []


def test_what_never_comes_is_not_remembered_for_ever() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(3):
        bob.says(alice, f"before there was a laptop: {n}")
    town.settle()
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    alice.read(bob)
    laptop.store.put_missed(Missed("lost", bob.me.device, town.now))
    laptop.look()
    town.settle()
    assert len(laptop.store.errands(READ_BEFORE)) == 3
    for _ in range(33):
        assert len(laptop.store.missed()) == 1 or town.now - START >= laptop.limits.kept_ms
        town.wait(86_400_000)
        town.settle()
    assert (laptop.store.errands(READ_BEFORE), laptop.store.missed()) == ([], [])


def test_an_account_moves_with_its_history_and_the_old_device_ends_itself() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(300):
        alice.says(bob, f"{n} " + "x" * 300)
        town.now += 1
    town.settle()
    bob.says(alice, "the last of the old days")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    town.settle()
    town.wait(2_500)
    town.settle()
    town.wait(2_500)
    town.settle()
    assert Moved(new.me.device) in alice.told(Moved)
    assert Moved(new.me.device) in new.told(Moved)
    assert new.texts(bob) == alice.texts(bob)
    assert said_by(alice, Unlinked) == [Unlinked(alice.me.device)]
    assert not alice.machine.sealer.own_list.is_primary
    alice.cut()
    new.crash()
    new.connect()
    town.settle()
    message = bob.says(new, "hello, new one")
    new.says(bob, "hello from the new one")
    town.settle()
    assert new.heard()[-1] == "hello, new one"
    assert bob.state(message) == "delivered"
    assert bob.heard()[-1] == "hello from the new one"
    assert bob.told(SecurityCodeChanged) == []
    listed = new.machine.sealer.believed.of(new.me.account)
    assert listed is not None
    assert [address.device for address in listed.devices] == [new.me.device]
