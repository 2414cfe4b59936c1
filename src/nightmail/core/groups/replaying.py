"""A dead letter to a group is replayed: to those who were addressed, and are members still.

Knows:   the group, its roster and members.
Touches: through `tell`, the members' shards; the author hears what fails.

It keeps its stamp and its number in the group, and goes into each member's mailbox, however large the group is: its
log has gone on, and devices have read past its number. Clients sort by the number.
"""

from __future__ import annotations

from nightmail.core.state import ShardState, missing_row
from nightmail.model.group_rows import GroupRoster, MemberState
from nightmail.model.ids import account_of
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.records import GroupSealed, GroupSent
from nightmail.model.rows import Kept, Need
from nightmail.model.spans import contains

from .fanning import fan_late
from .needs import needs_member, needs_roster
from .sending import life_ms_of, pass_on


def needs_replayed(state: ShardState, sent: GroupSent | GroupSealed, missing: list[Need]) -> None:
    missing_row(state.groups, Kept.GROUP, sent.group, missing)
    needs_roster(state, sent.group, missing)
    if isinstance(sent, GroupSealed):
        accounts = {account_of(envelope.device): None for envelope in sent.envelopes}
    else:
        roster = state.rosters.rows.get(sent.group)
        accounts = dict.fromkeys(_joined(roster)) if roster else {}
    for account in accounts:
        needs_member(state, sent.group, account, missing)


def replay(state: ShardState, by: int, sent: GroupSent | GroupSealed, letter: DeadLetter) -> bool:
    """False if there is nobody left whom it could reach."""
    group, roster = state.groups[sent.group], state.rosters[sent.group]
    if group is None or roster is None:
        return False
    if isinstance(sent, GroupSealed):
        pass_on(state, by, group, sent, letter.stamp)
        return True
    audience = [
        (account, roster.members[account].revision)
        for account in _joined(roster)
        if _was_addressed(state, sent.group, account, letter.group_seq)
    ]
    fan_late(state, by, sent, life_ms_of(group, sent), letter.stamp, letter.group_seq, audience)
    return any(account != account_of(by) for account, _ in audience)


def _joined(roster: GroupRoster) -> list[int]:
    return [account for account, entry in roster.members.items() if entry.state is MemberState.JOINED]


def _was_addressed(state: ShardState, group: int, account: int, seq: int) -> bool:
    member = state.members[group, account]
    return member is not None and bool(member.joined) and (member.joined <= seq or contains(member.former, seq))
