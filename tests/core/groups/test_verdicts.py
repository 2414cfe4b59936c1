"""What an ack says about groups: in the numbers of each."""

from __future__ import annotations

from nightmail.core.groups.verdicts import GroupVerdicts
from nightmail.core.state import ShardState
from nightmail.model.ids import device_id
from nightmail.model.records import GroupDelivered, Receipted
from nightmail.model.rows import GroupEntry
from nightmail.model.words import Kind, Lane, MessageState, Reason

NORMAL, HIGH = Lane
GROUP, OTHER, ALICE, BOB = 2, 4, 11, 13
PHONE, TABLET, MINE = device_id(ALICE, 1), device_id(ALICE, 2), device_id(BOB, 1)


def entry(by: int, n: int, seq: int, *, group: int = GROUP, of: str | None = None, lane: Lane = NORMAL) -> GroupEntry:
    return GroupEntry(by, group, n, "id", b"tag", Kind.TEXT, of, 5, 0, b"x", seq, 1, lane)


def test_numbers_are_told_by_group_and_author_and_those_of_notices_and_own_copies_are_not() -> None:
    verdicts, state = GroupVerdicts(MINE), ShardState()
    for one in (entry(PHONE, 1, 7), entry(TABLET, 1, 8), entry(PHONE, 2, 3, group=OTHER), entry(MINE, 1, 9)):
        verdicts.deliver(one)
    verdicts.deliver(entry(0, 0, 10))
    verdicts.tell(state, NORMAL)
    assert list(state.derived) == [
        GroupDelivered(GROUP, MINE, ((ALICE, ((7, 8),)),)),
        GroupDelivered(OTHER, MINE, ((ALICE, ((3, 3),)),)),
    ]


def test_what_was_sealed_for_one_device_is_told_to_its_author_by_number() -> None:
    verdicts, state = GroupVerdicts(MINE), ShardState()
    verdicts.deliver(entry(PHONE, 4, 0))
    verdicts.deliver(entry(PHONE, 5, 7, of="its id"))
    verdicts.tell(state, HIGH)
    assert list(state.derived) == [
        GroupDelivered(GROUP, MINE, ((ALICE, ((7, 7),)),)),
        Receipted(PHONE, GROUP, HIGH, MINE, MessageState.DELIVERED, Reason.NONE, 0, ((4, 5),)),
    ]


def test_a_failure_is_told_in_the_lane_of_its_number_and_one_of_a_notice_to_nobody() -> None:
    verdicts, state = GroupVerdicts(MINE), ShardState()
    verdicts.fail(entry(PHONE, 3, 7, lane=HIGH), Reason.EXPIRED)
    verdicts.fail(entry(0, 0, 8), Reason.EXPIRED)
    verdicts.tell(state, NORMAL)
    failed = Receipted(PHONE, GROUP, HIGH, MINE, MessageState.FAILED, Reason.EXPIRED, 0, ((3, 3),))
    assert list(state.derived) == [failed]
