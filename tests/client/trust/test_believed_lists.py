"""Another key: announced, and for a verified contact nothing before the person accepts it."""

from __future__ import annotations

from nightmail.client.events import ListUnsigned, Moved, SecurityCodeChanged, Unreadable
from nightmail.client.messages import conversation_id, unnamed
from nightmail.client.outbox.envelopes import new_id
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.note import Note, tag_of
from nightmail.model.limits import DAY_MS
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import encode
from nightmail.wire.items import Entries
from tests.client.sealed_town import a_town, agrees, pass_time, register_again, reset, revoke


def test_another_key_is_announced_and_what_is_written_then_reaches_the_new_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    new = reset(town, bob)
    new.connect()
    town.settle()
    alice.says(bob, "two")
    town.settle()
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, "bob", False)]
    assert new.heard()[-1] == "two"


def test_an_account_that_has_not_signed_a_list_is_told_once_and_gets_everything_when_it_has() -> None:
    town, (alice,) = a_town("alice")
    bob = town.join("bob")
    for text in ("one", "two"):
        alice.says(bob, text)
        pass_time(town, 1_000, 10_000)
    assert alice.told(ListUnsigned) == [ListUnsigned(bob.me.account, unnamed(bob.me.account))]
    bob.connect()
    pass_time(town, 1_000, 300_000)
    assert bob.heard() == ["one", "two"]


def test_if_the_former_key_was_verified_nothing_is_sealed_before_the_person_accepts() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.look()
    new = reset(town, bob)
    new.connect()
    town.settle()
    message = alice.says(bob, "two")
    town.settle()
    town.wait(400_000)
    town.settle()
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, "bob", True)]
    assert (new.heard(), alice.state(message)) == ([], "pending")
    assert agrees(town, alice, bob, verified=False)
    alice.look()
    town.settle()
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")


def test_a_second_change_of_key_does_not_lift_what_the_first_one_held() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.look()
    second = register_again(town, bob, 9)
    second.connect()
    town.settle()
    message = alice.says(bob, "two")
    town.settle()
    key_of_second = alice.machine.account_key(bob.me.account)
    third = register_again(town, second, 10)
    third.connect()
    town.settle()
    third.says(alice, "it is me, again with a new phone")
    alice.says(bob, "three")
    town.settle()
    pass_time(town, 400_000, 400_000)
    changes = [SecurityCodeChanged(bob.me.account, "bob", verified) for verified in (True, False)]
    assert alice.told(SecurityCodeChanged) == changes
    alice.cut()
    alice.connect()  # everything that waits is tried again
    town.settle()
    assert (second.heard(), third.heard(), alice.state(message)) == ([], [], "pending")
    # What the person agreed to was the key in between, which is not the account's any more.
    assert not alice.machine.agree(bob.me.account, town.now, key=key_of_second, verified=False)
    pass_time(town, 400_000)
    assert third.heard() == []
    assert agrees(town, alice, bob, verified=False)
    alice.look()
    pass_time(town, 400_000)
    assert (third.heard(), alice.state(message)) == (["two", "three"], "delivered")


def test_somebody_with_another_key_is_still_heard() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    agrees(town, alice, bob, verified=True)
    alice.look()
    new = reset(town, bob)
    new.connect()
    town.settle()
    new.says(alice, "it is me, with a new phone")
    town.settle()
    assert alice.heard() == ["it is me, with a new phone"]


def test_the_first_words_of_a_device_that_moved_since_are_read() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.cut()
    alice.says(bob, "first words")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, *[2_500] * 6)
    assert Moved(new.me.device) in alice.told(Moved)
    alice.cut()
    town.devices.remove(alice)
    new.cut()
    new.connect()
    town.settle()
    bob.connect()
    town.settle()
    assert (bob.heard(), bob.told(Unreadable)) == (["first words"], [])


def test_the_first_words_of_a_device_that_was_revoked_since_are_read_for_a_month() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    bob.cut()
    laptop.says(bob, "first words")
    town.settle()
    laptop.cut()
    town.devices.remove(laptop)
    revoke(town, alice, laptop)
    town.settle()
    bob.connect()
    town.settle()
    assert bob.heard() == ["first words"]
    assert laptop.me.device in bob.store.peers()
    bob.says(alice, "who is there?")
    town.settle()
    pass_time(town, *[DAY_MS] * 33)
    assert laptop.me.device not in bob.store.peers()
    pass_time(town, DAY_MS)
    tablet = town.pair(alice)
    tablet.connect()
    town.settle()
    signed = alice.machine.sealer.believed.of(alice.me.account)
    assert signed is not None
    assert (len(signed.devices), signed.departed) == (2, {})


def test_what_a_contact_sent_before_they_registered_again_is_read() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "hi")
    bob.says(alice, "hi")
    town.settle()
    alice.cut()
    for n in range(40):
        bob.says(alice, f"{n}")
    town.settle()
    register_again(town, bob).connect()
    town.settle()
    alice.says(bob, "are you there?")
    alice.connect()
    pass_time(town, 0, 60_000, 60_000)
    assert len(alice.told(SecurityCodeChanged)) == 1
    assert (alice.heard()[1:], alice.told(Unreadable)) == ([f"{n}" for n in range(40)], [])


def test_the_first_words_from_before_are_read_too_if_the_former_list_was_seen() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "hi")
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    alice.says(bob, "hi, both")
    town.settle()
    alice.cut()
    alice.store.drop_peer(laptop.me.device)
    alice.store.commit()
    alice.crash()
    laptop.says(alice, "from here, too")
    town.settle()
    laptop.cut()
    town.devices.remove(laptop)
    register_again(town, bob).connect()
    town.settle()
    alice.says(bob, "are you there?")
    alice.connect()
    pass_time(town, 0, 60_000)
    former = alice.machine.sealer.sessions.find(laptop.me.device)
    assert former is not None
    assert former.device == laptop.me.device


def test_what_a_revoked_device_sends_later_is_refused_even_if_the_server_hands_it_out() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    laptop.says(bob, "before")
    town.settle()
    bob.says(alice, "ok")
    town.settle()
    revoke(town, alice, laptop)
    town.settle(alice, bob)
    bob.machine.parts.unblocked(alice.me.account)
    bob.says(alice, "and now?")
    town.settle(alice, bob)
    town.now += 10 * DAY_MS
    bob.cut()
    bob.connect()
    town.settle(alice, bob)
    body, nonce = encode_content(Content(Kind.TEXT, "from a thief")), b"n" * 16
    ident = new_id(laptop.machine.sealer.believed._context)  # pyright: ignore[reportPrivateUsage]
    ciphertext = laptop.machine.sealer.sessions.seal(bob.me.device, Note(nonce, ident, body))
    tag = tag_of(nonce, body, conversation_id(alice.me.account, bob.me.account))
    entry = Entry(
        laptop.me.device, bob.me.account, 99, ident, tag, Kind.TEXT, None, town.now, 0, ciphertext
    )  # fmt: skip
    frame = encode([Entries(Lane.NORMAL, bob.store.cursors().normal + 1, (entry,))])
    bob.machine.receive(frame, town.now)
    bob.look()
    town.settle(alice, bob)
    assert "from a thief" not in bob.heard()
    assert [missed.by for missed in bob.told(Unreadable)] == [laptop.me.device]
