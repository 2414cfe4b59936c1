"""What a server answers to questions about groups, read from the fold's own rows."""

from __future__ import annotations

from nightmail.core.groups.cursors import offer
from nightmail.core.groups.reading import chain_after, receipts_of
from nightmail.core.state import ShardState
from nightmail.model.group_rows import Group, GroupRoster
from nightmail.model.ids import account_of
from nightmail.model.refusals import NotMember, UnknownGroup
from nightmail.model.rows import Gap, GroupEntry
from nightmail.wire.items import (
    Answered,
    FromServer,
    GroupChain,
    GroupLog,
    GroupLook,
    GroupMembers,
    GroupSeenBy,
    LogFetch,
    LogGap,
    LogRun,
    MemberShown,
    MembersLook,
    ReceiptsLook,
)

PAGE = 4
"""Members on a page: few, so that a test with six people has two."""


def answer_about_groups(
    state: ShardState, device: int, item: GroupLook | MembersLook | LogFetch | ReceiptsLook
) -> list[FromServer]:
    number = item.group
    group, roster = state.groups.rows.get(number), state.rosters.rows.get(number)
    if group is None or roster is None:
        return [Answered(item.ref, UnknownGroup(number))]
    member = state.members.rows.get((number, account_of(device)))
    if member is None or device not in member.devices:
        return [Answered(item.ref, NotMember(number))]
    return [_answer(state, device, item, group, roster)]


def _answer(
    state: ShardState, device: int, item: GroupLook | MembersLook | LogFetch | ReceiptsLook, group: Group,
    roster: GroupRoster,
) -> FromServer:  # fmt: skip
    number = item.group
    match item:
        case GroupLook():
            blobs = tuple(chain_after(state, number, item.after, 3))
            return GroupChain(
                item.ref, number, group.epoch, group.head, group.length, group.seq, group.fan_out, blobs
            )  # fmt: skip
        case MembersLook():
            found = sorted((a, entry) for a, entry in roster.members.items() if a > item.after)
            page = tuple(MemberShown(a, entry.key, entry.role, entry.state) for a, entry in found[:PAGE])
            return GroupMembers(
                item.ref, number, group.epoch, group.head, group.length, group.settings, page, len(found) > PAGE
            )
        case LogFetch():
            return _log(state, device, item, group)
        case ReceiptsLook():
            states = receipts_of(state, number, account_of(device), item.numbers)
            shown = tuple((seq, tuple(sorted(each.items()))) for seq, each in sorted(states.items()))
            return GroupSeenBy(item.ref, number, group.settings.receipts, shown)


def _log(state: ShardState, device: int, item: LogFetch, group: Group) -> GroupLog:
    parts: list[LogRun | LogGap] = []
    for each in offer(state, item.group, device, item.after, 8):
        if isinstance(each, Gap):
            parts.append(LogGap(each.low, each.high, each.reason))
        else:
            assert isinstance(each[1], GroupEntry)
            parts.append(LogRun(each[0], (each[1],)))
    return GroupLog(item.ref, item.group, item.after, tuple(parts), group.seq)
