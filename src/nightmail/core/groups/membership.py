"""What members' shards say about their accounts, on the group's shard.

Knows:   the group, its roster, and one member.
Touches: those; through `tell`, the members' shards.
"""

from __future__ import annotations

from nightmail.core.rules import Steps
from nightmail.core.state import ShardState
from nightmail.model.group_notices import GroupNotice, NoticeKind
from nightmail.model.group_rows import FanOut, Group, GroupMember, GroupRoster, MemberDevice, MemberState, RosterEntry
from nightmail.model.records import GroupMissed, MemberAnswered, MemberListed
from nightmail.model.rows import Need
from nightmail.model.spans import Spans, add_span, pairs

from .fanning import audience_of, fan_notice, fan_to_some
from .log import needs_log, note_at_head, settle_fan_out
from .needs import needs_member, needs_roster

SPANS_MAX = 32
"""Of what one device has. Beyond that the oldest is forgotten: too little is claimed, never too much."""


def needs_said(state: ShardState, _by: int, said: MemberAnswered | MemberListed) -> list[Need]:
    missing: list[Need] = []
    needs_roster(state, said.group, missing)
    needs_member(state, said.group, said.account, missing)
    needs_log(state, said.group, 0, missing)
    return missing


def step_answered(state: ShardState, _by: int, _via: int, answered: MemberAnswered) -> None:
    """An account joins, from the next number on; or it does not, and everybody is told that."""
    number, account = answered.group, answered.account
    group, roster = state.groups[number], state.rosters[number]
    entry = roster.members.get(account) if roster else None
    if group is None or roster is None or entry is None or entry.ask != answered.ask:
        return  # It was removed meanwhile, or added again.
    if answered.joined:
        _join(state, number, group, roster, entry, answered)
    else:
        entry.state = MemberState.REFUSED
        fan_notice(state, number, group, audience_of(roster), GroupNotice(NoticeKind.REFUSED, account, group.length))
    state.groups.put(number, group, state.offset)
    state.rosters.put(number, roster, state.offset)


def _join(
    state: ShardState, number: int, group: Group, roster: GroupRoster, entry: RosterEntry, answered: MemberAnswered
) -> None:
    account = answered.account
    entry.state, entry.revision = MemberState.JOINED, answered.revision
    group.joined += 1
    group.epoch += 1
    group.leavers.pop(account, None)
    member = state.members[number, account] or GroupMember()
    member.joined = group.seq + 1
    _replace_devices(state, number, group, member, answered.devices)
    _note_devices(group, account, answered)
    state.members.put((number, account), member, state.offset)
    settle_fan_out(state, number, group)
    if group.fan_out is not FanOut.WRITE:
        note_at_head(state, number, group, member.devices)
    told = [(account, entry.revision)]
    adder = roster.members.get(answered.adder)
    if adder is not None and adder.state is MemberState.JOINED and answered.adder != account:
        told.append((answered.adder, adder.revision))
    fan_to_some(state, number, group, told, GroupNotice(NoticeKind.JOINED, account, group.length, member.joined))


def step_listed(state: ShardState, _by: int, _via: int, listed: MemberListed) -> None:
    """A member has other devices, or is none any more. What comes late is older, and is dropped."""
    number, account = listed.group, listed.account
    group, roster = state.groups[number], state.rosters[number]
    entry = roster.members.get(account) if roster else None
    if group is None or roster is None or entry is None or entry.ask != listed.ask:
        return
    if entry.state is not MemberState.JOINED or listed.revision <= entry.revision:
        return
    entry.revision = listed.revision
    group.epoch += 1
    if listed.again or listed.closed:
        entry.state = MemberState.CLOSED if listed.closed else MemberState.SUSPENDED
        kind = NoticeKind.CLOSED if listed.closed else NoticeKind.SUSPENDED
        fan_notice(state, number, group, audience_of(roster), GroupNotice(kind, account, group.length))
        _end(state, number, group, account)
        _replace_devices(state, number, group, state.members.there((number, account)), ())
    else:
        member = state.members.there((number, account))
        _replace_devices(state, number, group, member, listed.devices)
        _note_devices(group, account, listed)
        state.members.put((number, account), member, state.offset)
        if group.fan_out is not FanOut.WRITE:
            note_at_head(state, number, group, member.devices)
    state.groups.put(number, group, state.offset)
    state.rosters.put(number, roster, state.offset)


def _replace_devices(
    state: ShardState, number: int, group: Group, member: GroupMember, devices: tuple[int, ...]
) -> None:
    """A device that is new is addressed from the next number on. What one that goes has not fetched, it has missed."""
    before, last = member.devices, group.seq
    member.devices = {device: before.get(device) or MemberDevice(last + 1, cursor=last) for device in devices}
    for device, had in before.items():
        if device not in member.devices:
            _keep(member.gone, had)
            if group.sweeps:
                state.derived.append(GroupMissed(number, device, max(had.cursor, had.since - 1)))


def _note_devices(group: Group, account: int, said: MemberAnswered | MemberListed) -> None:
    group.without_devices.pop(account, None)
    if not said.devices:
        group.without_devices[account] = said.revision


def end_membership(state: ShardState, number: int, group: Group, entry: RosterEntry, account: int) -> None:
    """The account is addressed up to the group's newest number. Its row stays: it may come back, and fetch its rest."""
    if entry.state is MemberState.JOINED:
        _end(state, number, group, account)


def _end(state: ShardState, number: int, group: Group, account: int) -> None:
    group.joined -= 1
    member = state.members.there((number, account))
    if member.joined <= group.seq:
        add_span(member.former, member.joined, group.seq)
    member.joined = 0
    group.without_devices.pop(account, None)
    if group.sweeps:
        group.leavers[account] = group.seq
    state.members.put((number, account), member, state.offset)
    settle_fan_out(state, number, group)


def _keep(gone: MemberDevice, had: MemberDevice) -> None:
    for low, high in pairs(had.delivered):
        add_span(gone.delivered, low, high)
    forget_oldest(gone.delivered)
    gone.read = max(gone.read, had.read)


def forget_oldest(spans: Spans) -> None:
    del spans[: max(0, len(spans) - 2 * SPANS_MAX)]


STEPS: Steps = {4: {MemberAnswered: (needs_said, step_answered), MemberListed: (needs_said, step_listed)}}
