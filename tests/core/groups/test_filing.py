"""What a group sends, filed: for the devices that could be sealed for, and for no other."""

from __future__ import annotations

from nightmail.model.notes import Placed
from nightmail.model.records import Acked, Blocked, Known, Unlinked
from nightmail.model.rows import Gap, PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START, name_of

NORMAL, HIGH = Lane
DAY = 24 * 3_600_000


def test_a_device_that_was_listed_after_the_fan_out_gets_nothing_of_it() -> None:
    town = GroupWorld(256)
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.carries = False
    town.write(alice[1], text="before")
    tablet = town.link(bob)
    town.carries = True
    town.write(alice[1], 2, text="also before, as the group knows it")
    assert len(town.messages(bob[1])) == 2
    assert town.messages(tablet) == []
    town.write(alice[1], 2, text="also before, as the group knows it")
    town.write(alice[1], 3, text="after")
    assert town.messages(tablet) == ["after"]


def test_a_device_that_was_unlinked_before_the_fan_out_fails_with_its_account_if_it_was_the_only_one() -> None:
    town = GroupWorld(256)
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol", 2)
    town.make(alice[1], alice, bob, carol)
    town.carries = False
    town.write(alice[1])
    town.do(bob[1], Unlinked(bob[1]))
    town.do(carol[1], Unlinked(carol[2]))
    town.carries = True
    town.write(alice[1])
    failed = (alice[1], GROUP, NORMAL, bob.account << 12, MessageState.FAILED, 1)
    assert town.receipts(alice[1]) == [PendingReceipt(failed, 1, START, Reason.DEVICE_REMOVED, [1, 1])]
    assert town.messages(carol[1]) == ["hello"]


def test_a_full_mailbox_fails_its_device_alone(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob", 2), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    town.limit(mailbox_entries=3, stranger_parts=1)
    town.send(carol[1], bob)
    town.send(carol[1], bob, 2)
    town.do(bob[2], Acked(NORMAL, 3))
    town.write(alice[1])
    assert (town.messages(bob[1]), town.messages(bob[2]), town.messages(carol[1])) == ([], ["hello"], ["hello"])
    failed = (alice[1], GROUP, NORMAL, bob[1], MessageState.FAILED, 1)
    assert town.receipts(alice[1]) == [PendingReceipt(failed, 1, START, Reason.MAILBOX_FULL, [1, 1])]


def test_a_group_is_never_refused_for_full_members_and_each_account_fails_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    town.limit(mailbox_entries=1, stranger_parts=1)
    said = town.write(alice[1])
    assert said is not None
    failed = (alice[1], GROUP, NORMAL, bob.account << 12, MessageState.FAILED, 1)
    assert town.receipts(alice[1]) == [PendingReceipt(failed, 1, START, Reason.MAILBOX_FULL, [1, 1])]


def test_blocks_and_shares_do_not_count_inside_a_group(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.limit(stranger_entries=1)
    town.write(alice[1], text="one")
    town.do(bob[1], Blocked(bob.account, alice.account, on=True))
    town.write(alice[1], 2, text="two")
    assert town.messages(bob[1]) == ["one", "two"]
    assert town.receipts(alice[1]) == []


def test_a_group_does_not_keep_friends_out_of_a_crowded_mailbox(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    town.do(bob[1], Known(bob.account, carol.account, on=True))
    waiting = len(town.entries(bob[1]))
    town.limit(mailbox_entries=2 * waiting + 2, stranger_parts=2)
    town.write(alice[1], 1, text="half full")
    town.write(alice[1], 2, text="one too many")
    town.write(carol[1], 1, text="of a friend")
    assert town.messages(bob[1]) == ["half full", "of a friend"]
    failed = (alice[1], GROUP, NORMAL, bob.account << 12, MessageState.FAILED, 2)
    assert [receipt.reason for receipt in town.receipts(alice[1]) if receipt.key == failed] == [Reason.MAILBOX_FULL]


def test_an_entry_that_is_too_old_leaves_a_gap_and_fails(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    town.wait(31 * DAY)
    assert town.offer(bob[1]) == [Gap(1, 2, Reason.EXPIRED)]
    failed = (alice[1], GROUP, NORMAL, bob[1], MessageState.FAILED, 1)
    assert [receipt.key for receipt in town.receipts(alice[1])] == [failed]


def test_an_envelope_for_a_former_registration_or_a_full_device_is_told_to_its_author(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.do(alice[1], town.group_sealed(alice[1], 1, bob[1], registration=7))
    town.limit(mailbox_entries=1, stranger_parts=1)
    town.do(alice[1], town.group_sealed(alice[1], 2, bob[1]))
    keys = {n: (alice[1], GROUP, HIGH, bob[1], MessageState.FAILED, n) for n in (1, 2)}
    assert town.receipts(alice[1]) == [
        PendingReceipt(keys[1], 1, START, Reason.STALE_DEVICES, [1, 1]),
        PendingReceipt(keys[2], 2, START, Reason.MAILBOX_FULL, [2, 2]),
    ]
    assert town.texts(bob[1], HIGH) == []


def test_the_delivery_log_tells_where_a_group_message_went(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    (at,) = [entry.at for entry in town.entries(bob[1]) if entry.by]
    (placed,) = [note for note in town.notes(bob) if isinstance(note, Placed) and (bob[1], 2) in note.places]
    assert placed == Placed(at, alice[1], GROUP, NORMAL, 1, name_of(alice[1], 1), None, False, False, placed.places)
