"""Fetching from a group's log: in order, without holes, and only what one was addressed with."""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.group_rows import MemberDevice
from nightmail.model.records import GroupAcked
from nightmail.model.refusals import AckAboveHead, NotMember, UnknownGroup
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START, Person

NORMAL, HIGH = Lane


def device_of(town: GroupWorld, person: Person, device: int) -> MemberDevice:
    member = town.member(person)
    assert member is not None
    return member.devices[device]


def test_an_ack_moves_the_cursor_counts_and_fails_what_could_not_be_opened(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    for n, lane in ((1, NORMAL), (2, NORMAL), (1, HIGH)):
        town.write(alice[1], n, lane=lane)
    assert town.do(bob[1], GroupAcked(GROUP, 3, (3,))) == Done()
    assert device_of(town, bob, bob[1]) == MemberDevice(1, [1, 2], 0, 3)
    failed = (alice[1], GROUP, HIGH, bob[1], MessageState.FAILED, 1)
    found = [receipt for receipt in town.receipts(alice[1]) if receipt.state is MessageState.FAILED]
    assert found == [PendingReceipt(failed, found[0].seq, START, Reason.UNDECRYPTABLE, [1, 1])]
    before = town.everything()
    assert town.do(bob[1], GroupAcked(GROUP, 2)) == Done()
    assert town.everything() == before
    town.wait(300)
    assert [receipt.numbers for receipt in town.receipts(alice[1]) if receipt.state is MessageState.DELIVERED] == [
        [1, 2]
    ]


def test_nobody_acknowledges_what_was_never_handed_out(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    assert town.do(alice[1], GroupAcked(GROUP, 1)) == UnknownGroup(GROUP)
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    assert town.do(bob[1], GroupAcked(GROUP, 2)) == AckAboveHead(1)
    assert town.do(carol[1], GroupAcked(GROUP, 1)) == NotMember(GROUP)


def test_time_outside_is_a_gap_and_coming_back_moves_no_cursor(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1], 1, text="one")
    town.remove(alice[1], bob)
    town.write(alice[1], 2, text="without bob")
    assert town.fetched(bob[1]) == ["one", "notice 2"]
    town.add(alice[1], bob)
    town.write(alice[1], 3, text="back")
    assert town.fetched(bob[1]) == ["one", "notice 2", "gap 3-4 not_member", "back"]
    assert device_of(town, bob, bob[1]).cursor == 0
    town.do(bob[1], GroupAcked(GROUP, 5))
    assert device_of(town, bob, bob[1]).delivered == [1, 1, 5, 5]


def test_a_leaver_may_fetch_its_rest_and_the_log_waits_for_it(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1], text="for bob, too")
    town.remove(alice[1], bob)
    for person in (alice, carol):
        town.do(person[1], GroupAcked(GROUP, 2))
    town.wait(60_000)
    assert town.fetched(bob[1]) == ["for bob, too", "notice 2"]
    town.do(bob[1], GroupAcked(GROUP, 2))
    town.wait(60_000)
    group = town.group()
    assert group is not None
    assert (group.leavers, group.sweeps, town.fetched(bob[1])) == ({}, False, ["gap 1-2 kept_elsewhere"])


def test_a_new_device_begins_where_the_group_learnt_of_it(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.write(alice[1], text="before")
    tablet = town.link(bob)
    town.write(alice[1], 2, text="after")
    assert town.fetched(tablet) == ["gap 1-1 not_member", "after"]
    assert town.fetched(alice[1]) == ["gap 1-2 kept_elsewhere"]
