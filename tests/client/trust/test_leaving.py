"""Devices that leave: what they sent before is read, and nothing that they send later."""

from __future__ import annotations

from nightmail.client.events import Moved, SecurityCodeChanged, Unreadable
from nightmail.client.messages import conversation_id
from nightmail.client.outbox.envelopes import new_id
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.note import Note, tag_of
from nightmail.model.limits import DAY_MS
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import encode
from nightmail.wire.items import Entries
from tests.client.sealed_town import a_town, pass_time, register_anew, revoke

# --- what was sent before -----------------------------------------------------------------------


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


def test_what_a_contact_sent_before_they_registered_anew_is_read() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "hi")
    bob.says(alice, "hi")
    town.settle()
    alice.cut()
    for n in range(40):
        bob.says(alice, f"{n}")
    town.settle()
    register_anew(town, bob).connect()
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
    register_anew(town, bob).connect()
    town.settle()
    alice.says(bob, "are you there?")
    alice.connect()
    pass_time(town, 0, 60_000)
    former = alice.machine.sealer.sessions.find(laptop.me.device)
    assert former is not None
    assert former.device == laptop.me.device


def test_a_contact_who_registers_anew_twice_gets_what_neither_of_the_first_two_devices_got() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.cut()
    message = alice.says(bob, "undelivered")
    town.settle()
    second = register_anew(town, bob)
    second.connect()
    town.settle(second)
    for _ in range(40):
        alice.carry_down()
        if any(row.only == second.me.device for row in alice.store.outgoing()):
            break
        alice.carry_up()
        town.wait(5)
    assert [row.only for row in alice.store.outgoing()] == [second.me.device]
    alice.cut()
    third = register_anew(town, second, 10)
    third.connect()
    town.settle(third)
    alice.connect()
    pass_time(town, 0, 5_000, 60_000)
    assert (alice.state(message), third.heard()) == ("delivered", ["undelivered"])


# --- what is sent later -------------------------------------------------------------------------


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
