"""An account moves away from a device: nothing is left behind."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import (
    Moved,
    SecurityCodeChanged,
)
from nightmail.client.store.rows import Conversation
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.ids import account_id
from nightmail.model.records import Unlinked
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import encode
from tests.client.sealed_town import a_town, keep_back, pass_time, said_by


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


def test_an_account_does_not_move_before_the_old_device_has_what_was_sent_to_it_alone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "hi")
    bob.says(alice, "hi")
    town.settle()
    alice.cut()
    for n in range(60):
        bob.says(alice, f"{n}")
    town.settle()
    held = keep_back(town, alice, Lane.NORMAL)
    alice.connect()
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[5_000] * 6)
    assert held
    assert (alice.told(Moved), alice.store.errand("leaving")) == ([], None)
    town.meddle = lambda device, item: item
    alice.cut()
    alice.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert Moved(new.me.device) in alice.told(Moved)
    assert new.texts(bob) == alice.texts(bob)
    assert len(new.texts(bob)) == 62


def test_what_comes_after_the_history_was_cut_follows_it() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.says(alice, "hi")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    held = keep_back(town, alice, Lane.HIGH)
    pass_time(town, 0)
    assert held  # the word that it is ready, in the high lane
    for item in held:
        alice.machine.receive(encode([item]), town.now)
    moving = alice.store.errand("leaving")
    assert moving is not None
    message = replace(bob.store.history(alice.me.account, 1)[0], id=f"{bob.me.device:x}:{town.now}:00077:late")
    late = replace(message, own=False, peer=bob.me.account, at=town.now)
    alice.machine.parts.inbox.show(late)  # pyright: ignore[reportPrivateUsage]
    alice.look()
    town.meddle = lambda device, item: item
    alice.cut()
    alice.connect()
    pass_time(town, 0, *[2_500] * 6)
    assert Moved(new.me.device) in alice.told(Moved)
    assert len(new.told(Moved)) == 1
    assert new.store.message(message.id) is not None


def test_ten_thousand_contacts_and_the_longest_message_move_in_parts_that_fit() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    room = alice.machine.sealer.fits(65_536)
    empty = len(encode_content(Content(Kind.TEXT, "")))
    alice.says(bob, "x" * (room - empty))
    bob.says(alice, "y" * (room - empty))
    town.settle()
    for n in range(10_000):
        handle = f"person.{n:06d}"
        alice.store.put_conversation(Conversation(account_id(handle), handle, 1))
    alice.store.commit()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert Moved(new.me.device) in alice.told(Moved)
    assert new.texts(bob) == alice.texts(bob)
    assert new.store.conversation(account_id("person.009999")).handle == "person.009999"
    assert alice.store.errands("word ") == []
