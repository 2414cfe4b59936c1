"""What a server answers to questions about groups, as the group's shard does."""

from __future__ import annotations

from nightmail.core.groups.answering import answer
from nightmail.core.state import ShardState
from nightmail.model.group_questions import (
    ChainAsked,
    ChainShown,
    GroupQuestion,
    LogAsked,
    LogShown,
    MembersAsked,
    MembersShown,
    ReceiptsAsked,
    ReceiptsShown,
)
from nightmail.model.refusals import NotMember, UnknownGroup
from nightmail.wire.items import (
    AboutGroups,
    Answered,
    FromServer,
    GroupChain,
    GroupLog,
    GroupLook,
    GroupMembers,
    GroupSeenBy,
    LogFetch,
    MembersLook,
    ReceiptsLook,
)

MEMBERS, BLOBS, ENTRIES = 4, 3, 8
"""On a page: few, so that a test with six people has two."""
BYTES = 1 << 20
STATES = 1_000


def answer_about_groups(state: ShardState, device: int, item: AboutGroups) -> list[FromServer]:
    ref, group = item.ref, item.group
    said = answer(state, _question(device, item))
    match said:
        case ChainShown():
            shown = GroupChain(ref, group, said.epoch, said.head, said.length, said.seq, said.fan_out, said.blobs)
        case MembersShown():
            shown = GroupMembers(
                ref, group, said.epoch, said.head, said.length, said.settings, said.members, said.more
            )  # fmt: skip
        case LogShown():
            assert isinstance(item, LogFetch)
            shown = GroupLog(ref, group, item.after, said.items, said.head)
        case ReceiptsShown():
            shown = GroupSeenBy(ref, group, said.receipts, said.states)
        case UnknownGroup() | NotMember():
            shown = Answered(ref, said)
        case _:
            raise AssertionError("nobody asks for growth")
    return [shown]


def _question(device: int, item: AboutGroups) -> GroupQuestion:
    match item:
        case GroupLook():
            return ChainAsked(item.group, device, item.after, BLOBS, BYTES)
        case MembersLook():
            return MembersAsked(item.group, device, item.after, MEMBERS)
        case LogFetch():
            return LogAsked(item.group, device, item.after, ENTRIES, BYTES)
        case ReceiptsLook():
            return ReceiptsAsked(item.group, device, item.numbers, STATES)
