"""Who has what, and who has read it: counted in the group's own numbers."""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.group_rows import MemberDevice
from nightmail.model.records import Acked, GroupRead, ReceiptsSet, Unlinked
from nightmail.model.refusals import NotMember
from nightmail.model.roster import GroupReceipts, GroupSettings
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START, Person

NORMAL, HIGH = Lane
SENT, DELIVERED, READ = MessageState.SENT, MessageState.DELIVERED, MessageState.READ


def ack_all(town: GroupWorld, device: int, unreadable: tuple[int, ...] = ()) -> None:
    box = town.mailbox(device)
    assert box is not None
    town.do(device, Acked(NORMAL, box.lanes[NORMAL].head, unreadable))


def device_of(town: GroupWorld, person: Person, device: int) -> MemberDevice:
    member = town.member(person)
    assert member is not None
    return member.devices[device]


def test_an_ack_counts_for_the_group_and_its_author_is_told_once_in_a_while(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1])
    town.write(alice[1], 2)
    ack_all(town, bob[1])
    ack_all(town, carol[1])
    assert town.receipts(alice[1]) == []
    town.wait(300)
    key = (0, GROUP, NORMAL, 0, DELIVERED, 0)
    assert town.receipts(alice[1]) == [PendingReceipt(key, 1, START + 300, Reason.NONE, [1, 2])]
    assert town.receipts_in_group(alice, 1, 2) == {
        n: {bob.account: DELIVERED, carol.account: DELIVERED} for n in (1, 2)
    }


def test_a_pair_and_a_group_that_count_alike_are_not_mixed(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1], 1)
    town.send(alice[1], bob, 1)
    town.write(alice[1], 2)
    ack_all(town, bob[1])
    pair = (alice[1], bob.account, NORMAL, bob[1], DELIVERED, 0)
    assert town.receipts(alice[1]) == [PendingReceipt(pair, 1, START, Reason.NONE, [1, 1])]
    assert device_of(town, bob, bob[1]).delivered == [1, 2]


def test_what_could_not_be_opened_is_failed_by_its_number_and_delivered_once_it_is_sealed_again(
    town: GroupWorld,
) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    box = town.mailbox(bob[1])
    assert box is not None
    ack_all(town, bob[1], (box.lanes[NORMAL].head,))
    failed = (alice[1], GROUP, NORMAL, bob[1], MessageState.FAILED, 1)
    assert town.receipts(alice[1]) == [PendingReceipt(failed, 1, START, Reason.UNDECRYPTABLE, [1, 1])]
    assert town.receipts_in_group(alice, 1) == {1: {bob.account: SENT}}
    town.do(alice[1], town.group_sealed(alice[1], 2, bob[1], of="its id", of_seq=1, lane=NORMAL))
    ack_all(town, bob[1])
    assert town.receipts_in_group(alice, 1) == {1: {bob.account: DELIVERED}}
    resealed = (alice[1], GROUP, NORMAL, bob[1], DELIVERED, 0)
    assert town.receipts(alice[1])[-1] == PendingReceipt(resealed, 2, START, Reason.NONE, [2, 2])


def test_the_author_of_keys_learns_which_device_has_them(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    town.do(alice[1], town.group_sealed(alice[1], 1, bob[1], bob[2]))
    town.do(bob[2], Acked(HIGH, 1))
    key = (alice[1], GROUP, HIGH, bob[2], DELIVERED, 0)
    assert town.receipts(alice[1]) == [PendingReceipt(key, 1, START, Reason.NONE, [1, 1])]


def test_own_copies_and_notices_count_nowhere(town: GroupWorld) -> None:
    alice, bob = town.join("alice", 2), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    ack_all(town, alice[2])
    assert device_of(town, alice, alice[2]) == MemberDevice(1)
    town.wait(300)
    assert town.receipts(alice[1]) == []


def test_a_read_passes_through_the_readers_shard_and_a_private_one_stays_there(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    town.do(carol[1], ReceiptsSet(carol.account, on=False))
    town.write(alice[1])
    read = GroupRead(GROUP, 1, (alice.account,))
    assert (town.do(bob[1], read), town.do(carol[1], read)) == (Done(), Done())
    assert town.receipts_in_group(alice, 1) == {1: {bob.account: READ, carol.account: SENT}}
    town.wait(300)
    key = (0, GROUP, NORMAL, 0, READ, 0)
    assert town.receipts(alice[1]) == [PendingReceipt(key, 1, START + 300, Reason.NONE, [1, 1])]


def test_who_shows_no_reads_is_told_of_none(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.do(alice[1], ReceiptsSet(alice.account, on=False))
    town.write(alice[1])
    town.do(bob[1], GroupRead(GROUP, 1, (alice.account,)))
    town.wait(300)
    assert town.receipts(alice[1]) == []


def test_nobody_reads_more_than_there_is_or_in_a_group_of_others(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice)
    assert town.do(bob[1], GroupRead(GROUP, 1, (alice.account,))) == NotMember(GROUP)
    town.add(alice[1], bob)
    town.do(bob[1], GroupRead(GROUP, 1_000_000, (alice.account, bob.account, 7)))
    assert device_of(town, bob, bob[1]).read == 1
    group = town.group()
    assert group is not None
    assert (group.read, group.delivered) == ({}, {})


def test_where_a_group_shows_one_receipt_for_all_nobody_is_named(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol, settings=GroupSettings(receipts=GroupReceipts.AT_LEAST_ONE))
    town.write(alice[1])
    assert town.receipts_in_group(alice, 1) == {1: {0: SENT}}
    ack_all(town, bob[1])
    assert town.receipts_in_group(alice, 1) == {1: {0: DELIVERED}}


def test_where_a_group_shows_none_nothing_is_kept(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob, settings=GroupSettings(receipts=GroupReceipts.NONE))
    town.write(alice[1])
    ack_all(town, bob[1])
    town.do(bob[1], GroupRead(GROUP, 1, (alice.account,)))
    assert device_of(town, bob, bob[1]) == MemberDevice(1)
    assert town.receipts_in_group(alice, 1) == {}


def test_what_a_device_had_stays_delivered_when_it_is_gone(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    ack_all(town, bob[2])
    town.do(bob[1], Unlinked(bob[2]))
    assert town.receipts_in_group(alice, 1) == {1: {bob.account: DELIVERED}}


def test_a_newcomer_is_not_counted_for_what_was_written_before(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    town.add(alice[1], carol)
    assert town.receipts_in_group(alice, 1) == {1: {bob.account: SENT}}


def test_of_many_holes_the_oldest_are_forgotten_and_never_filled(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    for n in range(1, 41):
        town.write(alice[1], n, lane=NORMAL)
        town.write(carol[1], n, lane=HIGH)
    ack_all(town, bob[1])
    assert device_of(town, bob, bob[1]).delivered == [bound for n in range(17, 81, 2) for bound in (n, n)]
