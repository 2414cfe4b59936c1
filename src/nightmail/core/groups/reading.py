"""Questions about a group. They change nothing, and are no part of the fold.

Each has a `needs_…`, which names the rows that must be in memory before it can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nightmail.core.state import ShardState, missing_pair
from nightmail.model.group_rows import GroupMember, MemberDevice, MemberState
from nightmail.model.roster import GroupReceipts, Role
from nightmail.model.rows import Kept, Need
from nightmail.model.spans import contains
from nightmail.model.words import MessageState

from .needs import needs_member, needs_roster


class MemberSeen(Struct, frozen=True):
    """One member, as others see it."""

    account: int
    role: Role
    key: bytes
    state: MemberState
    revision: int
    devices: tuple[int, ...]


class GroupSeen(Struct, frozen=True):
    """A group, as its members see it."""

    epoch: int
    head: bytes
    length: int
    seq: int
    members: tuple[MemberSeen, ...]


def needs_group(state: ShardState, number: int) -> list[Need]:
    """The group, its roster, and everybody who is in it."""
    missing: list[Need] = []
    needs_roster(state, number, missing)
    if roster := state.rosters.rows.get(number):
        for account in roster.members:
            needs_member(state, number, account, missing)
    return missing


def group_seen(state: ShardState, number: int) -> GroupSeen | None:
    group, roster = state.groups[number], state.rosters[number]
    if group is None or roster is None:
        return None
    members: list[MemberSeen] = []
    for account, entry in roster.members.items():
        member = state.members[number, account]
        devices = tuple(member.devices) if member and member.joined else ()
        members.append(MemberSeen(account, entry.role, entry.key, entry.state, entry.revision, devices))
    return GroupSeen(group.epoch, group.head, group.length, group.seq, tuple(members))


def needs_chain(state: ShardState, number: int, after: int, limit: int) -> list[Need]:
    missing: list[Need] = []
    needs_roster(state, number, missing)
    if group := state.groups.rows.get(number):
        for index in range(after + 1, min(group.length, after + limit) + 1):
            missing_pair(state.chain, Kept.CHAIN, number, index, missing)
    return missing


def chain_after(state: ShardState, number: int, after: int, limit: int) -> list[tuple[int, bytes]]:
    """The changes behind `after`, with their indices, except those that are not kept any more."""
    group = state.groups[number]
    if group is None:
        return []
    found = ((index, state.chain[number, index]) for index in range(after + 1, min(group.length, after + limit) + 1))
    return [(index, row.blob) for index, row in found if row is not None]


def receipts_of(state: ShardState, number: int, author: int, seqs: Sequence[int]) -> dict[int, dict[int, MessageState]]:
    """Number → account → what became of it there, for everybody but `author` who is a member and was addressed.

    Nothing where the group shows no receipts. Where it shows one for all, the best one, under account 0.
    """
    group, roster = state.groups[number], state.rosters[number]
    if group is None or roster is None or group.settings.receipts is GroupReceipts.NONE:
        return {}
    found: dict[int, dict[int, MessageState]] = {}
    for seq in seqs:
        states: dict[int, MessageState] = {}
        for account in roster.members:
            member = state.members[number, account]
            if account != author and member is not None and was_addressed(member, seq):
                states[account] = _state_of(member, seq)
        if group.settings.receipts is GroupReceipts.AT_LEAST_ONE:
            states = {0: max(states.values(), default=MessageState.SENT)}
        found[seq] = states
    return found


def was_addressed(member: GroupMember, seq: int) -> bool:
    """Whether the account was a member when this number was given."""
    return 0 < member.joined <= seq or contains(member.former, seq)


def _state_of(member: GroupMember, seq: int) -> MessageState:
    devices: list[MemberDevice] = [*member.devices.values(), member.gone]
    if any(seq <= device.read for device in devices):
        return MessageState.READ
    if any(contains(device.delivered, seq) for device in devices):
        return MessageState.DELIVERED
    return MessageState.SENT
