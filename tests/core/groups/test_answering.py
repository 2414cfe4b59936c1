"""Who may ask what about a group, and how much is answered at once."""

from __future__ import annotations

import pytest

from nightmail.core.groups.answering import answer, needs_answer
from nightmail.model.group_questions import (
    ChainAsked,
    ChainShown,
    GroupAnswer,
    GroupQuestion,
    GrowthAsked,
    GrowthShown,
    LogAsked,
    LogGap,
    LogRun,
    LogShown,
    MembersAsked,
    MemberShown,
    MembersShown,
    ReceiptsAsked,
    ReceiptsShown,
)
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.records import GroupAcked
from nightmail.model.refusals import NotMember, UnknownGroup
from nightmail.model.roster import GroupReceipts, GroupSettings, Role
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld, new_member

MANY, BYTES = 100, 1 << 20


def asked(town: GroupWorld, question: GroupQuestion) -> GroupAnswer:
    node = town.of(question.group)
    node.load(lambda state: needs_answer(state, question))
    return answer(node.state, question)


def questions(device: int, group: int = GROUP) -> list[GroupQuestion]:
    return [
        ChainAsked(group, device, 0, MANY, BYTES),
        MembersAsked(group, device, 0, MANY),
        LogAsked(group, device, 0, MANY, BYTES),
        ReceiptsAsked(group, device, (1,), MANY),
    ]


def log_of(town: GroupWorld, device: int, after: int = 0, limit: int = MANY, limit_bytes: int = BYTES) -> LogShown:
    shown = asked(town, LogAsked(GROUP, device, after, limit, limit_bytes))
    assert isinstance(shown, LogShown)
    return shown


def growth(town: GroupWorld, *devices: int, after: int = 0, limit: int = MANY) -> GrowthShown:
    shown = asked(town, GrowthAsked(GROUP, devices, after, limit, BYTES))
    assert isinstance(shown, GrowthShown)
    return shown


def in_short(shown: LogShown | GrowthShown) -> list[object]:
    return [(part.low, part.high, part.reason) if isinstance(part, LogGap)
            else [part.first, *(e.ciphertext.decode().partition("|")[2] if e.by else "notice" for e in part.entries)]
            for part in shown.items]  # fmt: skip


def test_strangers_learn_no_more_than_records_tell_them(town: GroupWorld) -> None:
    alice, bob, eve = town.join("alice"), town.join("bob"), town.join("eve")
    for question in questions(eve[1]):
        assert asked(town, question) == UnknownGroup(GROUP)
    town.make(alice[1], alice, bob)
    for question in questions(eve[1]):
        assert asked(town, question) == NotMember(GROUP)
    assert growth(town, eve[1]).heads == {}
    assert growth(town, eve[1]).whole == ()


def test_a_member_that_left_is_told_nothing_but_the_log_up_to_its_end(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1], 1, text="one")
    town.remove(alice[1], bob)
    town.write(alice[1], 2, text="without bob")
    chain, members, _, receipts = questions(bob[1])
    for question in (chain, members, receipts):
        assert asked(town, question) == NotMember(GROUP)
    shown = log_of(town, bob[1])
    assert (in_short(shown), shown.head, shown.is_member) == ([[1, "one", "notice"]], 2, False)
    # Of what came later it learns nothing, not even that it came.
    assert growth(town, bob[1], carol[1], after=2).heads == {}
    assert growth(town, bob[1], carol[1], after=2).whole == (carol[1],)
    assert growth(town, bob[1], carol[1], after=0).heads == {bob[1]: 2}


def test_the_chain_comes_in_parts_with_the_group_as_it_is(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.add(alice[1], carol)
    row = town.group()
    assert row is not None
    first = asked(town, ChainAsked(GROUP, bob[1], 0, MANY, 1))
    assert isinstance(first, ChainShown)
    assert [index for index, _ in first.blobs] == [1], "one is shown, however large it is"
    assert first == ChainShown(row.epoch, row.head, 2, row.seq, FanOut.WRITE, first.blobs)
    rest = asked(town, ChainAsked(GROUP, bob[1], 1, MANY, BYTES))
    assert isinstance(rest, ChainShown)
    assert [index for index, _ in rest.blobs] == [2]
    beyond = asked(town, ChainAsked(GROUP, bob[1], 1 << 52, MANY, BYTES))
    assert isinstance(beyond, ChainShown)
    assert beyond.blobs == ()


def test_members_come_by_page_in_the_order_of_their_numbers(town: GroupWorld) -> None:
    people = [town.join(name) for name in ("alice", "bob", "carol")]
    alice = people[0]
    town.make(alice[1], *people)
    row = town.group()
    assert row is not None
    ordered = sorted(people, key=lambda person: person.account)
    shown = [
        MemberShown(
            p.account, new_member(p).key, Role.ADMIN if p is alice else Role.MEMBER, MemberState.JOINED
        )
        for p in ordered
    ]  # fmt: skip
    for after, limit, page, more in ((0, 2, shown[:2], True), (shown[1].account, 2, shown[2:], False)):
        assert asked(town, MembersAsked(GROUP, alice[1], after, limit)) == MembersShown(
            row.epoch, row.head, 1, GroupSettings(), tuple(page), more
        )


def test_a_log_is_shown_up_to_so_many_bytes_and_without_what_the_device_wrote(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    for n, text in ((1, "one"), (2, "two")):
        town.write(alice[1], n, text=text)
    town.write(bob[1], 1, text="three")
    assert in_short(log_of(town, bob[1])) == [[1, "one", "two"], (3, 3, Reason.KEPT_ELSEWHERE)]
    assert in_short(log_of(town, bob[1], limit_bytes=1)) == [[1, "one"]]
    assert in_short(log_of(town, bob[1], 1, limit=1)) == [[2, "two"]]
    assert log_of(town, bob[1], 3).items == ()
    assert log_of(town, bob[1], 1 << 52).head == 3


@pytest.mark.parametrize("receipts", list(GroupReceipts))
def test_receipts_are_shown_as_the_group_wants_it(town: GroupWorld, receipts: GroupReceipts) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob, carol, settings=GroupSettings(receipts=receipts))
    town.write(alice[1])
    town.do(bob[1], GroupAcked(GROUP, 1))
    shown = asked(town, ReceiptsAsked(GROUP, alice[1], (1, 1, 99), MANY))
    assert isinstance(shown, ReceiptsShown)
    each = {(bob.account, MessageState.DELIVERED), (carol.account, MessageState.SENT)}
    expected = {
        GroupReceipts.EACH_MEMBER: each,
        GroupReceipts.AT_LEAST_ONE: {(0, MessageState.DELIVERED)},
        GroupReceipts.NONE: set(),
    }
    assert (shown.receipts, [(seq, set(states)) for seq, states in shown.states]) == (
        receipts,
        [(1, expected[receipts]), (99, set())],
    )


def test_of_many_receipts_the_first_numbers_are_answered_whole(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob, carol)
    for n in (1, 2, 3):
        town.write(alice[1], n)
    shown = asked(town, ReceiptsAsked(GROUP, alice[1], (1, 2, 3), 3))
    assert isinstance(shown, ReceiptsShown)
    assert [(seq, len(states)) for seq, states in shown.states] == [(1, 2), (2, 2)]


def test_a_newcomer_learns_nothing_about_messages_from_before(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.write(alice[1], 1)
    town.add(alice[1], carol)
    town.write(alice[1], 2)
    shown = asked(town, ReceiptsAsked(GROUP, carol[1], (1, 3), MANY))  # 2 says that she was added
    assert isinstance(shown, ReceiptsShown)
    assert [(seq, {account for account, _ in states}) for seq, states in shown.states] == [
        (1, set()),
        (3, {alice.account, bob.account}),
    ]


def test_growth_carries_entries_only_where_all_of_them_are_for_the_device(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.write(alice[1], 1, text="one")
    town.add(alice[1], carol)
    town.write(alice[1], 2, text="two")
    everybody = (alice[1], bob[1], carol[1])
    shown = growth(town, *everybody)
    assert in_short(shown) == [[1, "one", "notice", "two"]]
    assert (shown.whole, shown.heads, shown.head) == ((bob[1],), {alice[1]: 3, carol[1]: 3}, 3)
    newest = growth(town, *everybody, after=2)
    assert (newest.whole, newest.heads) == ((bob[1], carol[1]), {alice[1]: 3})
    too_many = growth(town, *everybody, limit=2)
    assert (too_many.items, too_many.whole, len(too_many.heads)) == ((), (), 3)


def test_growth_of_a_very_large_group_says_only_how_far_its_log_has_come(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1, group_read_members=1)
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    shown = growth(town, bob[1])
    assert (shown.items, shown.fan_out, shown.heads) == ((), FanOut.READ, {bob[1]: 1})


def test_what_is_shown_of_a_log_names_what_the_members_shards_were_told_before(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.do(alice[1], town.group_sealed(alice[1], 1, bob[1]))
    town.write(alice[1], 1)
    node = town.of(GROUP)
    shown = log_of(town, bob[1])
    assert (shown.told.source, dict(shown.told.counts)) == (node.state.index, node.state.shard.told)
    assert len(town.texts(bob[1], Lane.HIGH)) == 1
    assert isinstance(shown.items[0], LogRun)
