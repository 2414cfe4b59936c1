"""Sealed devices in one town: what is lost, repeated, crossed or restored, every message is shown once all the same."""

from __future__ import annotations

from nightmail.client.events import (
    Unreadable,
)
from nightmail.model.ids import SERVER
from nightmail.model.records import Claimed, Sent
from nightmail.wire.items import Answered, Devices, FromServer
from tests.client.sealed_town import a_town, said_by
from tests.client.town import Town

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
    keys = bob.machine.sealer.key_stock.keys
    assert (len(keys.one_time), len(keys.one_time_kem)) == (99, 19)


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
