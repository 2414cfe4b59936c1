"""Sealed devices in one town: what is lost, repeated, crossed or restored, every message is shown once all the same."""

from __future__ import annotations

import copy
from typing import TypeVar

import pytest
from msgspec.structs import replace

from nightmail.client.events import (
    DeviceLinked,
    MessageFailed,
    Moved,
    Provisioned,
    Reachable,
    ReadElsewhere,
    SecurityCodeChanged,
    Unreadable,
)
from nightmail.client.mending import ERRAND as MEND
from nightmail.client.messages import Message
from nightmail.client.reads import READ_BEFORE
from nightmail.client.store import Mark, Missed
from nightmail.model.answers import Joined
from nightmail.model.ids import SERVER
from nightmail.model.records import Claimed, Closed, Listed, Published, Registered, Sent, Unlinked
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Platform
from nightmail.wire.frames import encode
from nightmail.wire.items import Answered, Devices, FromServer, Receipts
from tests.client.town import START, Device, Town

B = TypeVar("B")


def a_town(*handles: str, seed: int = 0) -> tuple[Town, list[Device]]:
    town = Town(seed, sealed=True)
    devices = [town.join(handle) for handle in handles]
    for device in devices:
        device.connect()
    town.settle()
    return town, devices


def said_by(device: Device, kind: type[B]) -> list[B]:
    assert device.session is not None
    return [body for body in device.session.heard if isinstance(body, kind)]


# --- keys and lists -----------------------------------------------------------------------------


def agrees(town: Town, device: Device, peer: Device, *, verified: bool) -> bool:
    """The person says that of the key that is known now."""
    account = peer.me.account
    return device.machine.agree(account, town.now, key=device.machine.account_key(account), verified=verified)


def test_a_new_device_publishes_its_keys_then_signs_its_list_and_then_can_be_written_to() -> None:
    _, (alice,) = a_town("alice")
    assert alice.session is not None
    assert [type(body) for body in alice.session.heard] == [Published, Listed]
    assert alice.told(Reachable) == [Reachable()]


def test_what_was_published_once_is_not_published_again_after_a_restart() -> None:
    town, (alice,) = a_town("alice")
    alice.crash()
    alice.connect()
    town.settle()
    assert said_by(alice, Published) == said_by(alice, Listed) == []


def test_a_device_that_crashes_before_its_keys_are_confirmed_publishes_the_same_ones() -> None:
    town = Town(sealed=True)
    alice = town.join("alice")
    town.meddle = lambda device, item: None if isinstance(item, Answered) else item
    alice.connect()
    town.settle()
    first = said_by(alice, Published)
    town.meddle = lambda device, item: item
    alice.crash()
    alice.connect()
    town.settle()
    assert said_by(alice, Published) == first != []


def test_signed_prekeys_are_renewed_after_a_week() -> None:
    town, (alice,) = a_town("alice")
    for _ in range(8):
        town.wait(86_400_000)
        town.settle()
    assert len(said_by(alice, Published)) == 2


def test_low_stock_is_refilled() -> None:
    town, (alice,) = a_town("alice")
    alice.machine.sealed.keys_low()
    alice.look()
    town.settle()
    assert [len(body.one_time) for body in said_by(alice, Published)] == [100, 100]


def test_however_often_few_are_left_keys_are_made_every_few_minutes_and_a_bounded_number_is_held() -> None:
    town, (alice,) = a_town("alice")
    alice.machine.sealed.keys_low()
    alice.look()
    town.settle()
    for _ in range(20):
        alice.machine.sealed.keys_low()
        alice.look()
        town.settle()
    assert len(said_by(alice, Published)) == 2
    town.wait(alice.limits.restock_ms)
    town.settle()
    assert [len(body.one_time) for body in said_by(alice, Published)] == [100, 100, 100], "without being told again"


# --- talking ------------------------------------------------------------------------------------


def test_two_people_talk_and_nothing_that_travels_holds_a_word_of_it() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    message = alice.says(bob, "the secret word")
    town.settle()
    bob.says(alice, "understood")
    town.settle()
    assert (bob.heard(), alice.heard(), alice.state(message)) == (["the secret word"], ["understood"], "delivered")
    for sent in said_by(alice, Sent):
        assert all(b"secret" not in envelope.ciphertext for envelope in sent.envelopes)


def test_both_may_write_first_at_the_same_moment() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(3):
        alice.says(bob, f"a{n}")
        bob.says(alice, f"b{n}")
    town.settle()
    alice.says(bob, "a3")
    bob.says(alice, "b3")
    town.settle()
    assert bob.heard() == ["a0", "a1", "a2", "a3"]
    assert alice.heard() == ["b0", "b1", "b2", "b3"]
    assert alice.told(Unreadable) == bob.told(Unreadable) == []


def test_somebody_who_has_not_signed_a_list_yet_is_waited_for() -> None:
    town = Town(sealed=True)
    alice, bob = town.join("alice"), town.join("bob")
    alice.connect()
    message = alice.says(bob, "are you there?")
    town.settle()
    assert alice.state(message) == "pending"
    bob.connect()
    town.settle()
    town.wait(400_000)
    town.settle()
    assert (bob.heard(), alice.state(message)) == (["are you there?"], "delivered")


def test_without_one_time_keys_a_conversation_begins_all_the_same() -> None:
    town, (bob,) = a_town("bob")
    for n in range(130):
        town.say(SERVER, Claimed(bob.me.device, n + 1))
        town.now += 10_000
    alice = town.join("alice")
    alice.connect()
    town.settle()
    alice.says(bob, "hello")
    town.settle()
    assert bob.heard() == ["hello"]


# --- crashes ------------------------------------------------------------------------------------


def test_a_crash_between_the_commit_and_the_frame_sends_the_same_bytes_again() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    alice.says(bob, "two")
    (row,) = alice.store.outgoing()
    kept = dict(row.envelopes)
    assert kept
    alice.crash()
    alice.connect()
    town.settle()
    again = [envelope for sent in said_by(alice, Sent) for envelope in sent.envelopes]
    assert again == list(kept.values())
    assert bob.heard() == ["one", "two"]


def test_a_crash_before_the_commit_leaves_neither_ciphertext_nor_an_advanced_state() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    before = alice.store.peer(bob.me.device)
    alice.machine.compose(bob.me.account, b"\x01\x01\x01\x00\x00\x00\x01x", town.now)
    assert alice.store.peer(bob.me.device) != before
    alice.crash()
    assert alice.store.peer(bob.me.device) == before
    assert alice.store.outgoing() == []


def test_a_crash_before_an_opened_message_is_committed_opens_it_again() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle(alice)
    assert bob.session is not None
    for frame in bob.session.frames():
        bob.machine.receive(frame, town.now)
    bob.crash()
    bob.connect()
    town.settle()
    assert bob.heard() == ["one"]
    assert bob.told(Unreadable) == []


def test_the_state_of_what_was_opened_is_durable_with_it_and_its_one_time_keys_are_gone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    first = bob.store.peer(alice.me.device)
    alice.says(bob, "two")
    town.settle()
    bob.crash()
    assert bob.store.peer(alice.me.device) not in (None, first)
    keys = bob.machine.sealed.keyring.keys
    assert (len(keys.one_time), len(keys.one_time_kem)) == (99, 19)


# --- healing ------------------------------------------------------------------------------------


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
    keyring = device.machine.sealed.keyring
    lost = sorted(keyring.keys.one_time)[:count]
    keyring.put(replace(keyring.keys, one_time={n: key for n, key in keyring.keys.one_time.items() if n not in lost}))
    device.look()


def test_a_first_session_that_cannot_work_is_begun_anew_at_once() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lose_first_keys(bob, 1)
    message = alice.says(bob, "hello")
    town.settle()
    assert (alice.state(message), bob.heard()) == ("delivered", ["hello"])


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


# --- further devices ----------------------------------------------------------------------------


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
    assert laptop.store.marked(Mark.UNREAD) == []
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
    assert laptop.store.marked(Mark.UNREAD) == []
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
    assert not alice.machine.sealed.roster.is_primary
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
    listed = new.machine.sealed.trust.of(new.me.account)
    assert listed is not None
    assert [address.device for address in listed.devices] == [new.me.device]


# --- another key --------------------------------------------------------------------------------


def reset(town: Town, device: Device) -> Device:
    """The person lost the device and registers anew."""
    device.cut()
    town.say(SERVER, Unlinked(device.me.device))
    me = device.me
    said = town.say(SERVER, Registered(me.account, me.handle, 9, town.chance.randbytes(32), "new", Platform.CLI))
    assert isinstance(said, Joined), said
    town.devices.remove(device)
    return town.rejoin(me.handle, said.device, 9)


def test_another_key_is_announced_and_what_is_written_then_reaches_the_new_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    new = reset(town, bob)
    new.connect()
    town.settle()
    alice.says(bob, "two")
    town.settle()
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, f"{bob.me.account:x}", False)]
    assert new.heard()[-1] == "two"


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
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, f"{bob.me.account:x}", True)]
    assert (new.heard(), alice.state(message)) == ([], "pending")
    assert agrees(town, alice, bob, verified=False)
    alice.look()
    town.settle()
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")


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


# --- successors -----------------------------------------------------------------------------------


def test_what_a_removed_device_never_got_is_sealed_again_for_its_successor() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    message = alice.says(bob, "two")
    town.settle()
    new = reset(town, bob)
    new.connect()
    town.settle()
    town.wait(2_000)
    town.settle()
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")
    assert alice.told(MessageFailed) == []


def test_if_nobody_comes_in_its_place_the_message_has_failed_also_after_a_crash() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    for device in (bob, laptop):
        device.cut()
    message = alice.says(bob, "two")
    town.settle()
    alice.cut()
    town.say(SERVER, Unlinked(bob.me.device))
    town.say(SERVER, Unlinked(laptop.me.device))
    town.meddle = lambda device, item: None if isinstance(item, Devices) else item
    alice.connect()
    town.settle()
    assert (alice.state(message), alice.store.orphans()) == ("sent", [message.id])
    alice.crash()
    town.meddle = lambda device, item: item
    alice.connect()
    town.settle()
    assert (alice.state(message), alice.store.orphans()) == ("failed", [])
    assert [failed.reason for failed in alice.told(MessageFailed)] == ["device_removed"]


def test_a_contact_who_closes_their_account_while_something_else_waits_for_their_list_is_simply_gone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.cut()
    lost = alice.says(bob, "never delivered")
    town.settle()
    receipts: list[Receipts] = []

    def hold(device: int, item: FromServer) -> FromServer | None:
        if device == alice.me.device and isinstance(item, Receipts):
            receipts.append(item)
            return None
        return item

    town.meddle = hold
    town.say(bob.me.device, Closed(bob.me.account))
    alice.says(bob, "to nobody")
    town.settle()
    last = alice.says(bob, "and again")
    for item in receipts:
        alice.machine.receive(encode([item]), town.now)
        alice.look()
    town.meddle = lambda device, item: item
    town.settle()
    assert (alice.state(lost), alice.state(last), alice.store.orphans()) == ("failed", "failed", [])


def test_what_a_device_sent_before_it_left_the_list_is_shown_and_what_it_sends_later_is_not() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    laptop.says(alice, "one")
    town.settle()
    alice.cut()
    laptop.says(alice, "on my way out")
    town.settle()
    envelope = said_by(laptop, Sent)[-1].envelopes[0]
    town.say(bob.me.device, Unlinked(laptop.me.device))
    bob.machine.sign_again(town.now)
    bob.look()
    town.settle(bob)
    assert envelope.device == alice.me.device
    alice.connect()
    alice.says(bob, "hello")
    town.settle(alice, bob)
    assert alice.heard() == ["one", "on my way out"]
    town.wait(120_000)
    later = Entry(
        laptop.me.device, alice.me.account, 9, f"{laptop.me.device:x}:{town.now}:00009:x", b"t" * 16, Kind.TEXT,
        None, town.now, 0, envelope.ciphertext,
    )  # fmt: skip
    assert alice.machine.sealed.knows(later) is False
    for _ in range(33):
        town.wait(86_400_000)
        town.settle(alice, bob)
    assert laptop.me.device not in alice.store.peers(bob.me.account)


# --- lanes --------------------------------------------------------------------------------------


def test_a_lane_stands_still_for_a_list_in_order_and_nothing_of_it_is_acknowledged_meanwhile() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    held: list[FromServer] = []

    def slow(device: int, item: FromServer) -> FromServer | None:
        if isinstance(item, Devices) and device == bob.me.device and item.account == alice.me.account:
            held.append(item)
            return None
        return item

    town.meddle = slow
    for n in range(3):
        alice.says(bob, f"{n}")
    town.settle(alice)
    bob.exchange()
    bob.exchange()
    assert held
    assert (bob.heard(), bob.store.cursors().normal) == ([], 0)
    town.meddle = lambda device, item: item
    town.wait(6_000)
    town.settle()
    assert bob.heard() == ["0", "1", "2"]


def test_a_lane_that_stands_still_for_one_and_then_for_another_keeps_everything_behind_them() -> None:
    town, (alice, bob, carol) = a_town("alice", "bob", "carol")
    town.meddle = lambda device, item: None if isinstance(item, Devices) and device == bob.me.device else item
    for author, text in ((alice, "one"), (carol, "two"), (alice, "three"), (carol, "four")):
        author.says(bob, text)
        town.settle(author)
        bob.exchange()
        bob.exchange()
    assert bob.heard() == []
    town.meddle = lambda device, item: item
    town.wait(6_000)
    town.settle()
    town.wait(6_000)
    town.settle()
    assert bob.heard() == ["one", "two", "three", "four"]


def test_an_answered_claim_is_not_asked_for_again_and_an_unanswered_one_is_under_the_same_number() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    town.meddle = lambda device, item: None if isinstance(item, Answered) and "Bundle" in repr(item) else item
    alice.says(bob, "hello")
    town.settle()
    first = said_by(alice, Claimed)
    town.meddle = lambda device, item: item
    alice.cut()
    alice.crash()
    alice.connect()
    town.settle()
    assert {claim.request for claim in said_by(alice, Claimed)} == {claim.request for claim in first}
    assert bob.heard() == ["hello"]
    alice.says(bob, "again")
    town.settle()
    assert len(said_by(alice, Claimed)) == 1
