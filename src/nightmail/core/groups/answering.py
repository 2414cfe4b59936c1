"""Questions of devices about a group, answered from its rows. They change nothing, and are no part of the fold.

Knows:   who may ask: members; of the log also those who have left, up to their end. Others learn nothing.
Never:   shows a leaver what came after it: neither entries nor how far the group has come.
"""

from __future__ import annotations

from nightmail.core import mailbox
from nightmail.core.state import ShardState, missing_row
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
    ToldSoFar,
)
from nightmail.model.group_rows import FanOut, Group, GroupMember
from nightmail.model.ids import account_of, log_of
from nightmail.model.refusals import NotMember, UnknownGroup
from nightmail.model.rows import Entry, Gap, GroupEntry, Kept, Need
from nightmail.model.words import Lane, MessageState

from . import cursors
from .needs import needs_member, needs_roster
from .reading import chain_after, needs_chain, needs_group, receipts_of, was_addressed


def needs_answer(state: ShardState, question: GroupQuestion) -> list[Need]:
    """The rows that must be in memory before `answer` can be asked the same question."""
    number = question.group
    missing: list[Need] = []
    needs_roster(state, number, missing)
    if missing or state.groups[number] is None:
        return missing
    devices = question.devices if isinstance(question, GrowthAsked) else (question.device,)
    for account in dict.fromkeys(map(account_of, devices)):
        needs_member(state, number, account, missing)
    match question:
        case ChainAsked():
            missing += needs_chain(state, number, question.after, question.limit)
        case LogAsked():
            missing += cursors.needs_offer(state, number, question.device, question.after, question.limit)
        case GrowthAsked():
            missing_row(state.mailboxes, Kept.MAILBOX, log_of(number), missing)
            missing += mailbox.needs_offer(state, log_of(number), Lane.NORMAL, question.after, question.limit)
        case ReceiptsAsked():
            missing += needs_group(state, number)
        case MembersAsked():
            pass
    return missing


def answer(state: ShardState, question: GroupQuestion) -> GroupAnswer:
    number = question.group
    group = state.groups[number]
    if group is None:
        return UnknownGroup(number)
    if isinstance(question, GrowthAsked):
        return _growth(state, group, question)
    member = state.members[number, account_of(question.device)]
    if member is None or question.device not in member.devices:
        return NotMember(number)
    if isinstance(question, LogAsked):
        return _log(state, group, member, question)
    if not member.joined:
        return NotMember(number)
    match question:
        case ChainAsked():
            return _chain(state, group, question)
        case MembersAsked():
            return _members(state, group, question)
        case ReceiptsAsked():
            return _receipts(state, group, member, question)


def _told(state: ShardState) -> ToldSoFar:
    return ToldSoFar(state.index, dict(state.shard.told))


# --- what the group is ------------------------------------------------------------------------


def _chain(state: ShardState, group: Group, asked: ChainAsked) -> ChainShown:
    blobs: list[tuple[int, bytes]] = []
    size = 0
    for index, blob in chain_after(state, asked.group, asked.after, asked.limit):
        if blobs and size + len(blob) > asked.limit_bytes:
            break
        blobs.append((index, blob))
        size += len(blob)
    return ChainShown(group.epoch, group.head, group.length, group.seq, group.fan_out, tuple(blobs))


def _members(state: ShardState, group: Group, asked: MembersAsked) -> MembersShown:
    roster = state.rosters[asked.group]
    assert roster is not None
    behind = sorted(account for account in roster.members if account > asked.after)
    page = [(account, roster.members[account]) for account in behind[: asked.limit]]
    shown = tuple(MemberShown(account, entry.key, entry.role, entry.state) for account, entry in page)
    return MembersShown(group.epoch, group.head, group.length, group.settings, shown, len(behind) > len(page))


def _receipts(state: ShardState, group: Group, member: GroupMember, asked: ReceiptsAsked) -> ReceiptsShown:
    account, left = account_of(asked.device), asked.limit
    found: list[tuple[int, tuple[tuple[int, MessageState], ...]]] = []
    for seq in dict.fromkeys(asked.numbers):
        if left <= 0:
            break
        # A number that was not given yet brings nothing, nor one from before the asker was a member: it wrote neither.
        may_know = seq <= group.seq and was_addressed(member, seq)
        states = receipts_of(state, asked.group, account, (seq,)).get(seq, {}) if may_know else {}
        found.append((seq, tuple(states.items())))
        left -= max(1, len(states))
    return ReceiptsShown(group.settings.receipts, tuple(found))


# --- what stands in its log -------------------------------------------------------------------


def _log(state: ShardState, group: Group, member: GroupMember, asked: LogAsked) -> LogShown:
    head = _head(state, asked.group, member)
    items: list[LogRun | LogGap] = []
    run: list[GroupEntry] = []
    first = size = 0
    for item in cursors.offer(state, asked.group, asked.device, asked.after, asked.limit):
        if isinstance(item, Gap):
            if run:
                items.append(LogRun(first, tuple(run)))
                run = []
            items.append(LogGap(item.low, item.high, item.reason))
            continue
        seq, entry = item
        if size and size + len(entry.ciphertext) > asked.limit_bytes:
            break
        if not run:
            first = seq
        run.append(_of_group(entry))
        size += len(entry.ciphertext)
    if run:
        items.append(LogRun(first, tuple(run)))
    return LogShown(tuple(items), head, bool(member.joined), _told(state))


def _head(state: ShardState, number: int, member: GroupMember) -> int:
    """The last number that a member, or one who has left, can fetch."""
    box = state.mailboxes[log_of(number)]
    head = box.lanes[Lane.NORMAL].head if box else 0
    return head if member.joined else min(head, member.former[-1] if member.former else 0)


def _growth(state: ShardState, group: Group, asked: GrowthAsked) -> GrowthShown:
    box = state.mailboxes[log_of(asked.group)]
    head = box.lanes[Lane.NORMAL].head if box else 0
    items = _news(state, group, asked, head)
    entries = items[0].entries if items else ()
    whole: list[int] = []
    heads: dict[int, int] = {}
    for device in asked.devices:
        member = state.members[asked.group, account_of(device)]
        if member is None or device not in member.devices:
            continue
        if entries and all(cursors.is_for(member, device, e.group_seq) and e.by != device for e in entries):
            whole.append(device)
        elif member.joined or _head(state, asked.group, member) > asked.after:
            heads[device] = _head(state, asked.group, member)
    return GrowthShown(items, head, group.fan_out, tuple(whole), heads, _told(state))


def _news(state: ShardState, group: Group, asked: GrowthAsked, head: int) -> tuple[LogRun, ...]:
    """Every entry behind `after`, if they are few, and the news of this group carries them."""
    if group.fan_out is not FanOut.HYBRID or not asked.after < head <= asked.after + asked.limit:
        return ()
    offered = mailbox.offer(state, log_of(asked.group), Lane.NORMAL, asked.after, asked.limit)
    entries = tuple(_of_group(item[1]) for item in offered if not isinstance(item, Gap))
    if len(entries) != head - asked.after or sum(len(e.ciphertext) for e in entries) > asked.limit_bytes:
        return ()
    return (LogRun(asked.after + 1, entries),)


def _of_group(entry: Entry) -> GroupEntry:
    assert isinstance(entry, GroupEntry), "only these are filed in a group's log"
    return entry
