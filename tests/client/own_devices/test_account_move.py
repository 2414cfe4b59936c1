"""An account that moves: nothing is left behind, and nobody is believed who was not before."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from nightmail.client.events import Moved, SecurityCodeChanged
from nightmail.client.messages import Tick
from nightmail.client.outbox.control_copies import TO_ALL, TO_ALL_MAX
from nightmail.client.own_devices.controls import Control, HistoryPart, PastMessage, part_of
from nightmail.client.store.rows import Contact, Conversation, ReadMark
from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.lists import sign_list
from nightmail.e2ee.note import Note
from nightmail.model.ids import account_id
from nightmail.model.records import Sent
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import encode
from nightmail.wire.items import Devices, Entries, FromServer
from tests.client.sealed_town import a_town, agrees, pass_time, revoke
from tests.client.town import Device, Town


def keep_back(town: Town, device: Device, lane: Lane) -> list[FromServer]:
    """From now on nothing of a lane reaches a device."""
    held: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == device.me.device and isinstance(item, Entries) and item.lane is lane:
            held.append(item)
            return None
        return item

    town.meddle = meddle
    return held


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


def test_the_new_device_says_that_it_has_everything_also_if_that_was_written_before_a_restart() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.says(alice, "hi")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    while not any(row.content and decode_content(row.content).control == Control.MOVED for row in new.store.outgoing()):
        alice.exchange()
        new.carry_up()
        new.carry_down(1)
        town.wait(100)
    assert new.told(Moved) == []
    new.crash()
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert new.told(Moved) == [Moved(new.me.device)]
    assert Moved(new.me.device) in alice.told(Moved)


def test_whom_one_trusts_moves_along_and_another_key_is_announced_on_the_new_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.store.put_contact(Contact(bob.me.account, "bob", "Bobby"))
    alice.look()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    row, before = new.store.trusted(bob.me.account), alice.store.trusted(bob.me.account)
    assert row is not None
    assert row == before
    assert row.verified
    assert new.store.contact(bob.me.account) == Contact(bob.me.account, "bob", "Bobby")
    impersonate(town, new, bob)
    message = new.says(bob, "for bob")
    town.settle(new)
    assert [event.verified for event in new.told(SecurityCodeChanged)] == [True]
    assert new.state(message) == "pending"


def test_what_was_not_read_on_the_old_device_is_read_on_the_new_one_and_its_author_is_told() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    read = bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    unread = bob.says(alice, "two")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert Moved(new.me.device) in alice.told(Moved)
    assert [row.id for row in new.store.marked(ReadMark.UNREAD)] == [unread.id]
    alice.cut()
    town.devices.remove(alice)
    assert (bob.state(read), bob.state(unread)) == ("read", "delivered")
    new.read(bob)
    pass_time(town, 0)
    assert bob.state(unread) == "read"


def impersonate(town: Town, victim: Device, contact: Device) -> None:
    """The server shows a device another key of somebody."""
    keys = make_keys(Address(contact.me.device, contact.me.registration), town.secrets, town.now, primary=True)

    def meddle(device: int, item: FromServer) -> FromServer:
        if device != victim.me.device or not isinstance(item, Devices) or item.account != contact.me.account:
            return item
        signed = sign_list(keys.account, item.account, item.version, {keys.address: keys.identity.public})
        return replace(item, signed=signed.signed)

    town.meddle = meddle


def test_a_new_device_seals_for_nobody_before_it_knows_whom_the_old_one_trusts() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.look()
    new = town.pair(alice, hand_over=True)
    keep_back(town, alice, Lane.HIGH)  # so that it does not begin to send the history
    new.connect()
    pass_time(town, 0)
    message = new.says(bob, "not yet")
    bob.says(alice, "for both")
    pass_time(town, 0, 5_000)
    assert new.machine.parts.awaits_trust()
    assert new.session is not None
    assert message.id not in [body.id for body in new.session.heard if isinstance(body, Sent)]
    assert (new.state(message), new.heard()) == ("pending", ["for both"])
    town.meddle = lambda device, item: item
    alice.cut()
    alice.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert new.state(message) == "delivered"
    row = new.store.trusted(bob.me.account)
    assert row is not None
    assert row.verified


def test_another_key_that_the_new_device_was_shown_before_it_knew_better_is_a_change() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    row = alice.store.trusted(bob.me.account)
    assert row is not None
    carol = town.join("carol")
    carol.connect()
    impersonate(town, carol, bob)
    carol.says(bob, "who is it?")
    town.settle()
    carol.machine.sealer.believed.adopt(row)
    after = carol.store.trusted(bob.me.account)
    assert after is not None
    carol.look()
    assert (after.held, after.verified, after.signed == row.signed) == (True, False, False)
    assert [event.verified for event in carol.told(SecurityCodeChanged)] == [True]
    carol.machine.sealer.believed.adopt(after)
    assert carol.store.trusted(bob.me.account) == after


def test_if_the_old_device_is_gone_the_new_one_goes_on_without_it() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    new = town.pair(alice, hand_over=True)
    keep_back(town, alice, Lane.HIGH)
    new.connect()
    pass_time(town, 0)
    message = new.says(bob, "without you, then")
    pass_time(town, 0)
    alice.cut()
    town.devices.remove(alice)
    revoke(town, new, alice)
    pass_time(town, 0, 5_000)
    assert new.state(message) == "delivered"


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


def a_past(**changed: object) -> PastMessage:
    past = PastMessage(
        "a0be988829bb001:1:1:x", 1, 1, True, 5, encode_content(Content(Kind.TEXT, "x")), Kind.TEXT, 0, Tick.SENT, ""
    )
    return replace(past, **changed)


@pytest.mark.parametrize(
    "part",
    [
        HistoryPart(0, 1, 1, {}, (), (), ()),
        HistoryPart(2, 1, 1, {}, (), (), ()),
        HistoryPart(1, 1, 1, {2**64 - 1: "x"}, (), (), ()),
        HistoryPart(1, 1, 1, {}, (), (Contact(-1, "x"),), ()),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(id="none"),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(at=2**64 - 1),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(at=-1),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(body=b"junk"),)),
    ],
)
def test_a_part_that_cannot_be_stored_is_refused(part: HistoryPart) -> None:
    with pytest.raises(BadEncoding):
        part_of(msgspec.msgpack.encode(part))


def test_a_word_to_all_own_devices_that_one_cannot_open_is_sealed_again_for_that_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    bob.says(alice, "one")
    town.settle()
    real = laptop.machine.sealer.sessions.open
    hit: list[str] = []

    def open_(entry: Entry) -> Note:
        note = real(entry)
        if entry.kind is Kind.CONTROL and not hit:
            hit.append(entry.id)
            raise BadEncoding("note", "for the test")
        return note

    monkeypatch.setattr(laptop.machine.sealer.sessions, "open", open_)
    alice.read(bob)
    pass_time(town, 0, 5_000)
    assert hit
    assert laptop.store.marked(ReadMark.UNREAD) == []
    for _ in range(TO_ALL_MAX + 9):
        bob.says(alice, "more")
        town.settle()
        alice.read(bob)
        town.settle()
    assert len(alice.store.errands(TO_ALL)) == TO_ALL_MAX


@pytest.mark.parametrize("which", [Control.READY, Control.HISTORY, Control.MOVED])
def test_a_control_message_that_does_not_open_is_sealed_again(which: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(3):
        alice.says(bob, f"{n}")
    town.settle()
    new = town.pair(alice, hand_over=True)
    hit: list[str] = []
    for device in (alice, new):
        real = device.machine.sealer.sessions.open

        def open_(entry: Entry, real: Callable[[Entry], Note] = real) -> Note:
            note = real(entry)
            if entry.kind is Kind.CONTROL and decode_content(note.content).control == which and not hit:
                hit.append(entry.id)
                raise BadEncoding("note", "for the test")
            return note

        monkeypatch.setattr(device.machine.sealer.sessions, "open", open_)
    new.connect()
    pass_time(town, 0, *[10_000] * 4)
    assert hit
    assert Moved(new.me.device) in alice.told(Moved)
    assert Moved(new.me.device) in new.told(Moved)
    assert new.texts(bob) == alice.texts(bob)
