"""A group's chain: made once, then changed by one signed change after the other.

Knows:   the group, its roster, and the rules of `model/roster.py`.
Touches: those, the chain's rows, and the rows of members who go; through `tell`, the shards of those named.
Never:   checks a signature: that is what clients do.
"""

from __future__ import annotations

from nightmail.core.due import HOUR_MS
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.answers import GroupHead, Said
from nightmail.model.effects import Answer
from nightmail.model.group_chain import ChainedChange, decode_change, head_of
from nightmail.model.group_notices import GroupNotice, NoticeKind
from nightmail.model.group_rows import ChainBlob, Group, GroupRoster, MemberState, RosterEntry
from nightmail.model.ids import account_of, log_of
from nightmail.model.records import GroupChanged, GroupMade, MemberAsked, MemberGone
from nightmail.model.refusals import (
    AlreadyMember,
    AnyRefusal,
    GroupFull,
    GroupIdTaken,
    LastAdmin,
    NotGroupAdmin,
    NotMember,
    RateLimited,
    RemovesItself,
    StaleGroup,
    UnknownGroup,
    UnknownMember,
)
from nightmail.model.roster import (
    Addition,
    ChangeFault,
    Creation,
    Departure,
    GroupChange,
    NewMember,
    Removal,
    Role,
    RoleChange,
    SettingsChange,
    why_refused,
)
from nightmail.model.rows import Kept, Mailbox, Need

from .fanning import audience_of, fan_notice
from .log import needs_log
from .membership import end_membership
from .needs import needs_member, needs_roster

# --- made -------------------------------------------------------------------------------------


def needs_made(state: ShardState, _by: int, made: GroupMade) -> list[Need]:
    missing: list[Need] = []
    needs_roster(state, made.group, missing)
    missing_pair(state.chain, Kept.CHAIN, made.group, 1, missing)
    missing_row(state.mailboxes, Kept.MAILBOX, log_of(made.group), missing)
    return missing


def step_made(state: ShardState, by: int, via: int, made: GroupMade) -> None:
    """The creator is asked like everybody else: only its shard knows its devices."""
    number, head, group = made.group, head_of(made.blob), state.groups[made.group]
    change = decode_change(made.blob).change
    assert isinstance(change, Creation)
    most = state.shard.limits.group_members
    said: Said = GroupHead(head, 1, 1)
    if group is not None:
        if group.genesis != head:
            said = GroupIdTaken(number)
    elif len(change.members) > most:
        said = GroupFull(most)
    else:
        creator = account_of(by)
        group = Group(head, head, length=1, epoch=1, settings=change.settings, changes=(state.elapsed, 1))
        roster = GroupRoster()
        state.groups.put(number, group, state.offset)
        state.rosters.put(number, roster, state.offset)
        state.mailboxes.put(log_of(number), Mailbox(), state.offset)
        state.chain.put((number, 1), ChainBlob(made.blob), state.offset)
        _invite(state, number, group, roster, creator, change.members)
        roster.members[creator].role = Role.ADMIN
    state.effects.append(Answer(via, said))


# --- changed ----------------------------------------------------------------------------------


def needs_changed(state: ShardState, by: int, changed: GroupChanged) -> list[Need]:
    number = changed.group
    missing: list[Need] = []
    needs_roster(state, number, missing)
    needs_log(state, number, 0, missing)
    for account in dict.fromkeys((account_of(by), *_ended_by(by, changed))):
        needs_member(state, number, account, missing)
    if group := state.groups.rows.get(number):
        index = group.length + 1
        missing_pair(state.chain, Kept.CHAIN, number, index, missing)
        if index > state.shard.limits.chain_kept:
            missing_pair(state.chain, Kept.CHAIN, number, index - state.shard.limits.chain_kept, missing)
    return missing


def step_changed(state: ShardState, by: int, via: int, changed: GroupChanged) -> None:
    """The next change, if it follows the newest one and its author may make it."""
    number, head, actor = changed.group, head_of(changed.blob), account_of(by)
    group, roster = state.groups[number], state.rosters[number]
    said: Said | None
    if group is None or roster is None:
        said = UnknownGroup(number)
    elif head == group.head:
        said = GroupHead(head, group.length, group.epoch)  # Asked again.
    else:
        chained = decode_change(changed.blob)
        said = _check(state, number, group, roster, by, chained)
        if said is None:
            _append(state, number, group, head, changed.blob)
            notice = GroupNotice(NoticeKind.CHANGED, actor, group.length, blob=changed.blob)
            fan_notice(state, number, group, audience_of(roster), notice)
            _apply(state, number, group, roster, actor, chained.change)
            said = GroupHead(head, group.length, group.epoch)
    state.effects.append(Answer(via, said))


def _check(
    state: ShardState, number: int, group: Group, roster: GroupRoster, by: int, chained: ChainedChange
) -> AnyRefusal | None:
    actor, limits = account_of(by), state.shard.limits
    entry, member = roster.members.get(actor), state.members[number, actor]
    if entry is None or entry.state is not MemberState.JOINED or member is None or by not in member.devices:
        return NotMember(number)
    if chained.previous != group.head:
        return StaleGroup(group.epoch, group.head, group.length)
    since, count = group.changes
    if count >= limits.group_changes and state.elapsed < since + HOUR_MS:
        return RateLimited(since + HOUR_MS - state.elapsed)
    if fault := why_refused(roster.view(group.settings), actor, chained.change):
        return _refusal(number, fault, limits.group_members)
    if isinstance(chained.change, Addition):
        new = sum(account not in roster.members for account, _ in chained.change.members)
        if len(roster.members) + new > limits.group_members:
            return GroupFull(limits.group_members)
    return None


def _refusal(number: int, fault: ChangeFault, most: int) -> AnyRefusal:
    match fault:
        case ChangeFault.NOT_AN_ADMIN:
            return NotGroupAdmin(number)
        case ChangeFault.ALREADY_A_MEMBER:
            return AlreadyMember(number)
        case ChangeFault.NO_SUCH_MEMBER:
            return UnknownMember(number)
        case ChangeFault.REMOVES_ITSELF:
            return RemovesItself(number)
        case ChangeFault.LAST_ADMIN:
            return LastAdmin(number)
        case ChangeFault.TOO_MANY_MEMBERS:
            return GroupFull(most)
        case _:
            return NotMember(number)


def _append(state: ShardState, number: int, group: Group, head: bytes, blob: bytes) -> None:
    group.head = head
    group.length += 1
    group.epoch += 1
    since, count = group.changes
    group.changes = (since, count + 1) if state.elapsed < since + HOUR_MS else (state.elapsed, 1)
    state.groups.put(number, group, state.offset)
    state.chain.put((number, group.length), ChainBlob(blob), state.offset)
    if (oldest := group.length - state.shard.limits.chain_kept) > 0:
        state.chain.put((number, oldest), None, state.offset)


def _apply(state: ShardState, number: int, group: Group, roster: GroupRoster, actor: int, change: GroupChange) -> None:
    match change:
        case Creation():
            raise AssertionError("refused above")
        case Addition(members):
            _invite(state, number, group, roster, actor, members)
        case Removal(accounts):
            for account in accounts:
                _remove(state, number, group, roster, account)
        case Departure(successor):
            _remove(state, number, group, roster, actor)
            if successor:
                roster.members[successor].role = Role.ADMIN
        case RoleChange(account, role):
            roster.members[account].role = role
        case SettingsChange(settings):
            group.settings = settings
    state.rosters.put(number, roster, state.offset)


def _ended_by(by: int, changed: GroupChanged) -> tuple[int, ...]:
    """Accounts whose membership the change ends."""
    match decode_change(changed.blob).change:
        case Addition(members):
            return tuple(account for account, _ in members)
        case Removal(accounts):
            return accounts
        case Departure():
            return (account_of(by),)
        case _:
            return ()


def _invite(
    state: ShardState, number: int, group: Group, roster: GroupRoster, adder: int, members: tuple[NewMember, ...]
) -> None:
    """Ask the shard of each. An account that is a member under another key begins again."""
    for account, key in members:
        if account in roster.members:
            end_membership(state, number, group, roster.members[account], account)
        roster.members[account] = RosterEntry(Role.MEMBER, key, group.length)
        state.tell(account, MemberAsked(number, account, group.length, adder))


def _remove(state: ShardState, number: int, group: Group, roster: GroupRoster, account: int) -> None:
    entry = roster.members.pop(account)
    end_membership(state, number, group, entry, account)
    state.tell(account, MemberGone(number, account))


STEPS: Steps = {4: {GroupMade: (needs_made, step_made), GroupChanged: (needs_changed, step_changed)}}
