"""Where a group's entries go, and what its log holds."""

from __future__ import annotations

import pytest

from nightmail.core.groups.log import fan_out_for
from nightmail.model.group_rows import AtHead, FanOut
from nightmail.model.ids import log_of
from nightmail.model.limits import FoldLimits
from nightmail.model.records import GroupAcked, ReceiptsAcked
from nightmail.model.rows import Kept, PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START

NORMAL, HIGH = Lane
WRITE, HYBRID, READ = FanOut
LIMITS = FoldLimits(group_write_members=100, group_read_members=1_000)


@pytest.mark.parametrize(
    ("present", "joined", "then"),
    [
        (WRITE, 100, WRITE), (WRITE, 101, HYBRID), (WRITE, 1_001, READ),
        (HYBRID, 1_000, HYBRID), (HYBRID, 1_001, READ), (HYBRID, 90, HYBRID), (HYBRID, 89, WRITE),
        (READ, 900, READ), (READ, 899, HYBRID), (READ, 89, WRITE),
    ],
)  # fmt: skip
def test_a_border_is_crossed_back_only_a_tenth_below_it(present: FanOut, joined: int, then: FanOut) -> None:
    assert fan_out_for(present, joined, LIMITS) is then


def test_above_the_border_an_entry_is_stored_once_and_everybody_is_told_once(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.write(alice[1], text="on write")
    town.limit(group_write_members=2)
    town.add(alice[1], carol)
    assert town.messages(bob[1]) == ["on write"]
    town.write(alice[1], 2, text="in the log")
    town.write(alice[1], 3, text="likewise")
    assert town.messages(bob[1]) == ["on write"]
    box = town.mailbox(log_of(GROUP))
    assert box is not None
    assert (box.lanes[NORMAL].acked, box.lanes[NORMAL].head, box.waiting) == (2, 4, 2)
    mark = PendingReceipt((0, GROUP, NORMAL, 0, MessageState.SENT, 0), 1, START, Reason.NONE, [3, 3])
    assert town.receipts(bob[1]) == [mark]
    assert town.of(GROUP).row(Kept.AT_HEAD, GROUP) == AtHead()


def test_a_device_that_has_caught_up_is_told_again_and_another_costs_nothing(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    for device in (alice[1], bob[1]):
        town.do(device, ReceiptsAcked(1))
    town.do(bob[1], GroupAcked(GROUP, 1))
    assert town.of(GROUP).row(Kept.AT_HEAD, GROUP) == AtHead({bob[1]: 1})
    town.write(alice[1], 2)
    assert [receipt.numbers for receipt in town.receipts(bob[1])] == [[2, 2]]
    assert town.receipts(alice[1]) == []


def test_below_the_border_entries_go_to_mailboxes_again_and_the_log_names_them_as_kept_elsewhere(
    town: GroupWorld,
) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=2)
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1], text="one in the log")
    town.remove(alice[1], carol)
    group = town.group()
    assert group is not None
    assert group.fan_out is HYBRID  # two members are not a tenth below
    town.remove(alice[1], bob)
    town.write(alice[1], 2, text="on write")
    town.add(alice[1], bob, carol)
    town.write(alice[1], 3, text="in the log again")
    assert town.fetched(alice[1]) == [
        "gap 1-1 kept_elsewhere",
        "notice 2",
        "notice 3",
        "gap 4-6 kept_elsewhere",
    ]


def test_what_everybody_has_leaves_the_log_when_it_is_looked_at(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    for n in (1, 2, 3):
        town.write(alice[1], n)
    town.do(alice[1], GroupAcked(GROUP, 3))
    town.do(bob[1], GroupAcked(GROUP, 3))
    town.do(bob[2], GroupAcked(GROUP, 2))
    box = town.mailbox(log_of(GROUP))
    assert box is not None
    assert box.waiting == 3
    town.wait(60_000)
    box = town.mailbox(log_of(GROUP))
    assert box is not None
    assert (box.lanes[NORMAL].acked, box.waiting) == (2, 1)
    town.do(bob[2], GroupAcked(GROUP, 3))
    town.wait(60_000)
    box, group = town.mailbox(log_of(GROUP)), town.group()
    assert box is not None
    assert group is not None
    assert (box.waiting, box.bytes, group.sweeps) == (0, 0, False)


def test_an_entry_in_the_log_that_is_too_old_is_a_gap_and_fails_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1, ttl_ms=1_000)
    town.make(alice[1], alice, bob)
    town.write(alice[1], lane=HIGH)
    town.wait(5_000)
    assert town.fetched(bob[1]) == ["gap 1-1 expired"]
    failed = [receipt for receipt in town.receipts(alice[1]) if receipt.state is MessageState.FAILED]
    assert [receipt.key for receipt in failed] == [(alice[1], GROUP, HIGH, log_of(GROUP), MessageState.FAILED, 1)]


def test_beyond_its_bytes_the_log_ends_the_oldest_entries_and_their_authors_learn_it(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1, group_log_bytes=60)
    town.make(alice[1], alice, bob)
    for n in range(1, 7):
        town.write(alice[1], n)
    box = town.mailbox(log_of(GROUP))
    assert box is not None
    assert 0 < box.bytes <= 60
    gap, *rest = town.fetched(bob[1])
    assert gap == f"gap 1-{6 - len(rest)} expired"
    failed = {receipt.key[5] for receipt in town.receipts(alice[1]) if receipt.reason is Reason.MAILBOX_FULL}
    assert failed == set(range(1, 7 - len(rest)))


def test_a_log_that_held_too_much_has_room_for_a_while(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    size = len(f"{GROUP}|hello")
    town.limit(group_write_members=1, group_log_bytes=32 * size)
    town.make(alice[1], alice, bob)
    waiting: list[int] = []
    for n in range(1, 38):
        town.write(alice[1], n)
        box = town.mailbox(log_of(GROUP))
        assert box is not None
        waiting.append(box.bytes // size)
    assert waiting == [*range(1, 33), 30, 31, 32, 30, 31]
