"""What a device asks about groups: answered to members, in parts, and never without bounds."""

from __future__ import annotations

import pytest

from nightmail.gateway.budgets import Budgets
from nightmail.gateway.counters import Counters
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.groups import ASKED_AT_ONCE, RECEIPT_NUMBERS
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.answers import Bundle
from nightmail.model.forms import NUMBER_MAX
from nightmail.model.group_questions import MemberShown
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import FellowClaimed, GroupAcked
from nightmail.model.refusals import Malformed, NotMember, RateLimited, UnknownGroup
from nightmail.model.roster import GroupReceipts, GroupSettings, Role
from nightmail.model.words import Lane, MessageState
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import (
    REF_MAX,
    AboutGroups,
    Answered,
    Ask,
    Entries,
    GroupChain,
    GroupLog,
    GroupLook,
    GroupMembers,
    GroupSeenBy,
    LogFetch,
    MembersLook,
    Ping,
    Pong,
    ReceiptsLook,
)
from tests.gateway.group_rig import (
    ADA,
    BEN,
    EVES,
    GROUP,
    HYBRID,
    PHONE,
    TABLET,
    GroupTown,
    a_group_town,
    in_short,
    key_of,
    logs,
)

QUESTIONS: tuple[AboutGroups, ...] = (
    GroupLook(1, GROUP, 0),
    MembersLook(2, GROUP, 0),
    LogFetch(3, GROUP, 0, False),
    ReceiptsLook(4, GROUP, (1,)),
)


def test_a_member_is_told_the_chain_the_members_the_log_and_who_has_what() -> None:
    town = a_group_town()
    town.say_in_group("hello")
    ben = town.connect(TABLET)
    ben.say(*QUESTIONS)
    chain, members, seen_by, log = ben.take()
    row = town.loop.state.groups[GROUP]
    assert row is not None
    assert isinstance(chain, GroupChain)
    assert chain == GroupChain(1, GROUP, row.epoch, row.head, 1, 1, FanOut.HYBRID, chain.blobs)
    shown = tuple(
        MemberShown(account, key_of(account), role, MemberState.JOINED)
        for account, role in sorted(((ADA, Role.ADMIN), (BEN, Role.MEMBER)))
    )
    assert members == GroupMembers(2, GROUP, row.epoch, row.head, 1, GroupSettings(), shown, False)
    assert isinstance(log, GroupLog)
    assert in_short(log) == (3, 0, ["hello"], 1)
    assert seen_by == GroupSeenBy(4, GROUP, GroupReceipts.EACH_MEMBER, ((1, ((ADA, MessageState.SENT),)),))


def test_a_stranger_is_refused_and_nothing_is_stored_or_attended() -> None:
    town = a_group_town()
    eve = town.connect(EVES)
    before = town.loop.state.offset
    eve.say(*QUESTIONS, LogFetch(5, GROUP, 0, True), GroupLook(6, GROUP + 2, 0))
    assert eve.take() == [
        *(Answered(ref, NotMember(GROUP)) for ref in (1, 2, 3, 4, 5)),
        Answered(6, UnknownGroup(GROUP + 2)),
    ]
    assert (town.loop.state.offset, len(town.gateway.groups.attended)) == (before, 0)


@pytest.mark.parametrize("item", [
    GroupLook(5, GROUP + 1, 0), GroupLook(5, 0, 0), GroupLook(5, 1 << 49, 0), GroupLook(5, -2, 0),
    GroupLook(5, GROUP, -1), GroupLook(5, GROUP, NUMBER_MAX + 1), MembersLook(5, GROUP, -1),
    LogFetch(5, GROUP, NUMBER_MAX + 1, True), LogFetch(5, 3, 0, True),
    ReceiptsLook(5, GROUP, (0,)), ReceiptsLook(5, GROUP, (NUMBER_MAX + 1,)),
    ReceiptsLook(5, GROUP, tuple(range(1, RECEIPT_NUMBERS + 2))),
])  # fmt: skip
def test_what_is_malformed_is_refused_under_its_number(item: AboutGroups) -> None:
    ben = a_group_town().connect(TABLET)
    ben.say(item, Ping(1))
    (refused, pong) = ben.take()
    assert isinstance(refused, Answered)
    assert (refused.ref, type(refused.said), type(pong)) == (5, Malformed, Pong)


@pytest.mark.parametrize("ref", [0, -1, REF_MAX + 1])
def test_a_question_that_cannot_be_answered_ends_the_connection(ref: int) -> None:
    ben = a_group_town().connect(TABLET)
    ben.say(GroupLook(ref, GROUP, 0), GroupLook(2, GROUP, 0))
    assert ben.link.closed == (CloseCode.MALFORMED, "malformed: a ref out of range")


def test_a_log_is_fetched_part_by_part_until_its_head() -> None:
    town = GroupTown(HYBRID, limits=GatewayLimits(batch_entries=2))
    town.make(BEN)
    for n in range(1, 6):
        town.say_in_group(f"text {n}")
    ben = town.connect(TABLET)
    after, got = 0, list[object]()
    while after < 5:
        ben.say(LogFetch(1, GROUP, after, False))
        (log,) = logs(ben.take())
        got.append(in_short(log))
        after += len(log.items[0].entries)  # type: ignore[union-attr]
        ben.say(Ask(0, GroupAcked(GROUP, after)))
    assert got == [
        (1, 0, ["text 1", "text 2"], 5),
        (1, 2, ["text 3", "text 4"], 5),
        (1, 4, ["text 5"], 5),
    ]


# --- keys come first ----------------------------------------------------------------------------


def test_entries_of_a_log_leave_only_after_the_keys_before_them() -> None:
    town = GroupTown(HYBRID, limits=GatewayLimits(credit_entries=1))
    town.make(BEN)
    ben = town.connect(TABLET)
    ben.ack(1)
    ben.say(LogFetch(1, GROUP, 0, True))
    ben.take()
    town.hand_key(TABLET)
    town.hand_key(TABLET)
    town.say_in_group("needs both keys")
    ben.say(LogFetch(2, GROUP, 0, True))
    # The first key has taken the device's credit: the second one cannot go out yet, and so no entry.
    first = ben.take()
    assert [item.lane for item in first if isinstance(item, Entries)] == [Lane.HIGH]
    assert logs(first) == []
    ben.ack(1, Lane.HIGH)
    second = ben.take()
    assert isinstance(second[0], Entries)
    assert (second[0].lane, second[0].first) == (Lane.HIGH, 2)
    assert [in_short(log) for log in logs(second)] == [
        (0, 0, ["needs both keys"], 1),
        (2, 0, ["needs both keys"], 1),
    ]


def test_answers_without_entries_do_not_wait_for_keys() -> None:
    town = GroupTown(HYBRID, limits=GatewayLimits(credit_entries=1))
    town.make(BEN)
    ben = town.connect(TABLET)
    town.hand_key(TABLET)
    town.hand_key(TABLET)
    town.say_in_group("waits")
    ben.say(LogFetch(1, GROUP, 0, False), GroupLook(2, GROUP, 0), LogFetch(3, GROUP, 1, False))
    assert [item.ref for item in ben.take() if isinstance(item, GroupChain | GroupLog)] == [2, 3]


# --- bounds -------------------------------------------------------------------------------------


def test_a_flood_of_fetches_is_refused_and_only_a_few_are_asked_at_once() -> None:
    town = a_group_town(groups=GroupLimits(waiting=6))
    town.say_in_group("hello")
    ben = town.connect(TABLET)
    ben.link.unsent_bytes = 1 << 20
    ben.say(*(LogFetch(ref, GROUP, 0, False) for ref in range(1, 101)))
    refused = [item for item in ben.take() if isinstance(item, Answered)]
    assert [item.ref for item in refused] == list(range(7, 101))
    assert {type(item.said) for item in refused} == {RateLimited}
    assert town.gateway.counters.groups_limited == 94
    assert town.gateway.counters.groups_asked == 0, "nothing is read while the socket is full"
    ben.link.unsent_bytes = 0
    ben.session.wake()
    assert [log.ref for log in logs(ben.take())] == [1, 2, 3, 4, 5, 6]
    assert ASKED_AT_ONCE < 6


def test_an_account_may_ask_so_much_over_all_its_connections() -> None:
    town = a_group_town(groups=GroupLimits(asks_per_s=1, asks_burst=3))
    ben = town.connect(TABLET)
    ben.say(GroupLook(1, GROUP, 0), ReceiptsLook(2, GROUP, (1, 2)), GroupLook(3, GROUP, 0))
    assert [item for item in ben.take() if isinstance(item, Answered)] == [Answered(3, RateLimited(1_001))]
    again = town.connect(TABLET)
    again.say(GroupLook(1, GROUP, 0))
    assert [type(item) for item in again.take()] == [Answered]
    town.wait(2_000)
    again.say(GroupLook(2, GROUP, 0))
    assert [item.ref for item in again.take() if isinstance(item, GroupChain)] == [2]


def test_while_entries_wait_for_keys_no_more_is_read_than_a_frame_may_hold() -> None:
    limits = GatewayLimits(credit_entries=1, unsent_bytes=100)
    town = GroupTown(HYBRID, limits=limits)
    town.make(BEN)
    ben = town.connect(TABLET)
    ben.ack(1)
    town.hand_key(TABLET)
    town.hand_key(TABLET)
    town.say_in_group("x" * 60)
    ben.say(*(LogFetch(ref, GROUP, 0, False) for ref in range(1, 11)))
    assert logs(ben.take()) == []
    assert town.gateway.counters.groups_asked == 2
    ben.ack(1, Lane.HIGH)
    assert [log.ref for log in logs(ben.take())] == list(range(1, 11))


def test_a_connection_that_ends_with_questions_under_way_is_left_alone() -> None:
    town = a_group_town()
    town.say_in_group("hello")
    ben = town.connect(TABLET)
    ben.say(LogFetch(1, GROUP, 0, True))
    ben.session.lost()
    town.turn()
    town.say_in_group("again")
    town.turn()
    assert len(town.gateway.groups.attended) == 0
    assert logs(ben.link.take()) == []


def test_who_asks_nothing_about_groups_costs_nothing() -> None:
    town = a_group_town()
    ben, ada = town.connect(TABLET), town.connect(PHONE)
    town.say_in_group("hello")
    assert logs([*ben.take(), *ada.take()]) == []
    assert (town.gateway.counters.groups_asked, len(town.gateway.groups.attended)) == (0, 0)


# --- keys of fellow members ---------------------------------------------------------------------


def test_a_member_claims_keys_of_its_fellows_beyond_the_budget_for_strangers() -> None:
    town = GroupTown(HYBRID, limits=GatewayLimits(claims_per_minute=1, fellow_claims_per_minute=3))
    town.make(BEN)
    ada = town.connect(PHONE)
    ada.say(GroupLook(1, GROUP, 0))
    ada.take()
    ada.say(*(Ask(ref, FellowClaimed(GROUP, TABLET, ref)) for ref in range(2, 6)))
    said = {item.ref: type(item.said) for item in ada.take() if isinstance(item, Answered)}
    assert said == {2: Bundle, 3: Bundle, 4: Bundle, 5: RateLimited}


def test_a_claim_of_a_fellow_is_refused_before_the_device_was_seen_to_be_a_member() -> None:
    town = a_group_town()
    ada, eve = town.connect(PHONE), town.connect(EVES)
    eve.say(GroupLook(1, GROUP, 0))
    eve.take()
    before = town.loop.state.offset
    for phone in (ada, eve):
        phone.say(Ask(2, FellowClaimed(GROUP, TABLET, 1)))
        assert phone.take() == [Answered(2, NotMember(GROUP))]
    assert town.loop.state.offset == before


def test_a_first_message_to_a_thousand_people_finds_their_keys_within_a_minute() -> None:
    budgets = Budgets(GatewayLimits(), Counters(), 0)
    claims = looks = 0
    look_buckets = budgets.looks(PHONE, "192.0.2.1", 0)
    for now in range(0, 60_000, 20):
        while looks < 1_000 and all(bucket.level(now) >= 1 for bucket in look_buckets):
            for bucket in look_buckets:
                bucket.spend(1)
            looks += 1
        while claims < 2 * looks:
            target = device_id(account_id(f"person {claims // 2}"), 1 + claims % 2)
            if budgets.wait_ms(PHONE, "192.0.2.1", FellowClaimed(GROUP, target, 1 + claims), now):
                break
            claims += 1
    assert (looks, claims) == (1_000, 2_000)


def test_from_one_address_a_device_loses_no_more_keys_to_fellows_than_to_others() -> None:
    budgets = Budgets(GatewayLimits(address_device_claims_per_minute=3), Counters(), 0)
    crowd = [device_id(account_id(f"person {n}"), 1) for n in range(9)]
    taken = [budgets.wait_ms(device, "192.0.2.1", FellowClaimed(GROUP, TABLET, 1), 0) == 0 for device in crowd]
    assert sum(taken) == 3
