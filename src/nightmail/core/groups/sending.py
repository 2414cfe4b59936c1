"""Writing to a group: numbered once, on the group's shard, whatever becomes of the group meanwhile.

Knows:   the author's stream to the group, the group, its roster, and the author's devices.
Touches: the stream and the group; through `tell`, the members' shards.

A number that is taken is answered from the ring before anything else is looked at: an author who lost the answer gets
it, also when the group has changed since, or the author was removed.
"""

from __future__ import annotations

from nightmail.core import ring
from nightmail.core.numbering import answer_out_of_turn, take_number
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.answers import Accepted, GroupAccepted, Said
from nightmail.model.effects import Answer
from nightmail.model.group_rows import Group, GroupMember, GroupRoster, MemberState
from nightmail.model.ids import account_of, shard_of
from nightmail.model.records import (
    Envelope,
    Enveloped,
    FiringOutcome,
    FiringSettled,
    GroupFired,
    GroupSealed,
    GroupSent,
    GroupVoided,
    Receipted,
)
from nightmail.model.refusals import AnyRefusal, IdReused, NotGroupAdmin, NotMember, StaleGroup, UnknownGroup
from nightmail.model.rows import Kept, Need, Stream
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.spans import contains
from nightmail.model.words import Lane, MessageState, Reason

from .fanning import fan_message
from .log import needs_log
from .needs import needs_member, needs_roster

# --- numbers ----------------------------------------------------------------------------------


def _answer_out_of_turn(stream: Stream, said: GroupSent | GroupSealed | GroupVoided) -> Said | None:
    """The answer to a number that is not the next one, or to an id with other content than before."""
    numbers = stream.lanes[said.lane]
    if said.n != numbers.last + 1:
        answer = answer_out_of_turn(numbers, said)
        if isinstance(answer, Accepted):
            return GroupAccepted(answer.id, answer.tag, answer.at, answer.list_version)
        return answer
    if not isinstance(said, GroupVoided) and ring.is_reused(stream.lanes, said.id, said.tag):
        return IdReused(said.id)
    return None


def _answer_again(state: ShardState, stream: Stream, said: GroupSent | GroupSealed) -> Said | None:
    """The same, and a retry of what was accepted is counted."""
    answer = _answer_out_of_turn(stream, said)
    state.ledger.repeated += isinstance(answer, GroupAccepted)
    return answer


def answer_from_memory(state: ShardState, by: int, said: GroupSent | GroupSealed) -> Said | None:
    """The answer to a retry, if it can be given without going through the log once more."""
    stream = state.streams.rows.get((by, said.group))
    if stream is None or said.n > stream.lanes[said.lane].last:
        return None
    return _answer_out_of_turn(stream, said)


def _take_number(state: ShardState, by: int, stream: Stream, group: Group, said: GroupSent | GroupSealed) -> Said:
    """Its stamp is later than every other one of the group, and of the author's stream."""
    stream.at = max(stream.at, group.at)
    group.at = take_number(state, (by, said.group), stream, said, group.seq)
    state.groups.put(said.group, group, state.offset)
    return GroupAccepted(said.id, said.tag, group.at, group.seq)


def _check_member(state: ShardState, number: int, roster: GroupRoster, by: int) -> NotMember | None:
    """Only devices that the group knows: nobody could open what another one writes."""
    entry, member = roster.members.get(account_of(by)), state.members[number, account_of(by)]
    if entry is None or entry.state is not MemberState.JOINED or member is None or by not in member.devices:
        return NotMember(number)
    return None


def _needs_author(state: ShardState, by: int, group: int, missing: list[Need]) -> None:
    missing_pair(state.streams, Kept.STREAM, by, group, missing)
    needs_roster(state, group, missing)
    needs_member(state, group, account_of(by), missing)


# --- a message --------------------------------------------------------------------------------


def needs_sent(state: ShardState, by: int, sent: GroupSent) -> list[Need]:
    missing: list[Need] = []
    _needs_author(state, by, sent.group, missing)
    group = state.groups.rows.get(sent.group)
    needs_log(state, sent.group, life_ms_of(group, sent) if group else 0, missing)
    return missing


def step_sent(state: ShardState, by: int, via: int, sent: GroupSent) -> None:
    stream = state.streams[by, sent.group] or Stream()
    group, roster = state.groups[sent.group], state.rosters[sent.group]
    said = _answer_again(state, stream, sent)
    if said is None and (group is None or roster is None):
        said = UnknownGroup(sent.group)
    if said is None:
        assert group is not None
        assert roster is not None
        said = _check_sent(state, group, roster, by, sent)
        if said is None:
            group.seq += 1
            said = _take_number(state, by, stream, group, sent)
            fan_message(state, group, roster, by, sent, life_ms_of(group, sent))
    state.effects.append(Answer(via, said))


def _check_sent(state: ShardState, group: Group, roster: GroupRoster, by: int, sent: GroupSent) -> AnyRefusal | None:
    if refusal := _check_member(state, sent.group, roster, by):
        return refusal
    if sent.epoch != group.epoch or sent.head != group.head:
        return StaleGroup(group.epoch, group.head, group.length)
    if roster.members[account_of(by)].role < group.settings.writers:
        return NotGroupAdmin(sent.group)
    return None


def life_ms_of(group: Group, sent: GroupSent) -> int:
    """The shorter of the message's and the group's timer; 0: neither has one."""
    lives = [life for life in (sent.life_ms, group.settings.timer_ms) if life]
    return min(lives, default=0)


# --- a message that could not be applied --------------------------------------------------------


def needs_buried(state: ShardState, by: int, body: GroupSent | GroupSealed) -> list[Need]:
    missing: list[Need] = []
    missing_pair(state.streams, Kept.STREAM, by, body.group, missing)
    missing_row(state.groups, Kept.GROUP, body.group, missing)
    return missing


def bury_message(state: ShardState, by: int, body: GroupSent | GroupSealed) -> Said | None:
    """Take its number, and the group's, so that it can still be delivered in its place; None: there is no group."""
    stream, group = state.streams[by, body.group] or Stream(), state.groups[body.group]
    if said := _answer_out_of_turn(stream, body):
        return said
    if group is None:
        return None
    group.seq += isinstance(body, GroupSent)
    return _take_number(state, by, stream, group, body)


# --- a number that was given up ---------------------------------------------------------------


def needs_voided(state: ShardState, by: int, voided: GroupVoided) -> list[Need]:
    missing: list[Need] = []
    missing_pair(state.streams, Kept.STREAM, by, voided.group, missing)
    needs_roster(state, voided.group, missing)
    return missing


def step_voided(state: ShardState, by: int, via: int, voided: GroupVoided) -> None:
    """Consume a number, unless its message was accepted after all: then say so."""
    stream = state.streams[by, voided.group] or Stream()
    said = _answer_out_of_turn(stream, voided)
    if said is None and state.groups[voided.group] is None:
        said = UnknownGroup(voided.group)
    elif said is None:
        numbers = stream.lanes[voided.lane]
        ring.keep(numbers, Accepted(voided.id, ring.VOID, state.now, 0))
        ring.forget(numbers, voided.floor, state.shard.limits.ring_acks)
        state.streams.put((by, voided.group), stream, state.offset)
        said = GroupAccepted(voided.id, ring.VOID, state.now, 0)
    state.effects.append(Answer(via, said))


# --- a message whose time has come ------------------------------------------------------------


def needs_fired(state: ShardState, _by: int, fired: GroupFired) -> list[Need]:
    return needs_sent(state, fired.by, _as_sent(fired, 0))


def step_fired(state: ShardState, _by: int, _via: int, fired: GroupFired) -> None:
    """Like one that is sent now, but its number comes from the third count of the stream."""
    by, number = fired.by, fired.group
    stream = state.streams[by, number] or Stream()
    group, roster = state.groups[number], state.rosters[number]
    sent = _as_sent(fired, stream.scheduled + 1)
    refusal = _check_sent(state, group, roster, by, sent) if group and roster else UnknownGroup(number)
    if refusal is not None:
        outcome = FiringOutcome.STALE if isinstance(refusal, StaleGroup) else FiringOutcome.REFUSED
        state.tell(account_of(by), FiringSettled(account_of(by), fired.serial, outcome, error=refusal.word))
        return
    assert group is not None
    assert roster is not None
    stream.scheduled += 1
    group.seq += 1
    group.at = stream.at = max(state.now, stream.at + 1, group.at + 1)
    state.streams.put((by, number), stream, state.offset)
    state.groups.put(number, group, state.offset)
    fan_message(state, group, roster, by, sent, life_ms_of(group, sent))
    settled = FiringSettled(
        account_of(by), fired.serial, FiringOutcome.FILED, sent.n, group.at, group_seq=group.seq
    )  # fmt: skip
    state.tell(account_of(by), settled)


def _as_sent(fired: GroupFired, count: int) -> GroupSent:
    f, c, n = fired, fired.content, SCHEDULED_FROM + count
    return GroupSent(f.group, Lane.NORMAL, n, n, 0, f.id, f.tag, f.kind, c.epoch, c.head, f.life_ms, c.ciphertext)


# --- for single devices -----------------------------------------------------------------------


def needs_sealed(state: ShardState, by: int, sealed: GroupSealed) -> list[Need]:
    missing: list[Need] = []
    _needs_author(state, by, sealed.group, missing)
    for account in dict.fromkeys(account_of(envelope.device) for envelope in sealed.envelopes):
        needs_member(state, sealed.group, account, missing)
    return missing


def step_sealed(state: ShardState, by: int, via: int, sealed: GroupSealed) -> None:
    """Pass on each envelope whose device is still addressed. The author is told which were left out, and stops nobody.

    The epoch is not compared: with many devices, or one that relists, the author would never come to an end.
    """
    stream = state.streams[by, sealed.group] or Stream()
    group, roster = state.groups[sealed.group], state.rosters[sealed.group]
    said = _answer_again(state, stream, sealed)
    if said is None and (group is None or roster is None):
        said = UnknownGroup(sealed.group)
    if said is None:
        assert group is not None
        assert roster is not None
        said = _check_member(state, sealed.group, roster, by)
        if said is None:
            said = _take_number(state, by, stream, group, sealed)
            pass_on(state, by, group, sealed, group.at)
    state.effects.append(Answer(via, said))


def pass_on(state: ShardState, by: int, group: Group, sealed: GroupSealed, at: int) -> None:
    by_shard: dict[int, list[Envelope]] = {}
    for envelope in sealed.envelopes:
        device = envelope.device
        member = state.members[sealed.group, account_of(device)]
        if device != by and member is not None and _is_addressed(member, device, sealed.of_seq):
            by_shard.setdefault(shard_of(account_of(device), state.shards), []).append(envelope)
        else:
            left_out = Receipted(
                by, sealed.group, sealed.lane, device, MessageState.FAILED, Reason.DEVICE_REMOVED, state.now,
                ((sealed.n, sealed.n),),
            )  # fmt: skip
            state.tell(account_of(by), left_out)
            state.ledger.owed += 1
            state.ledger.fail(Reason.DEVICE_REMOVED)
    s = sealed
    for part in by_shard.values():
        enveloped = Enveloped(
            s.group, by, s.lane, s.n, s.id, s.tag, s.kind, s.of, s.of_seq, s.life_ms, at, group.epoch, tuple(part)
        )
        state.ledger.carried += len(part)
        state.tell(account_of(part[0].device), enveloped)


def _is_addressed(member: GroupMember, device: int, of_seq: int) -> bool:
    """Whether the group knows the device; and, of a re-seal, whether its account could read the original.

    A device that was linked since may have what its account had.
    """
    if not member.joined or device not in member.devices:
        return False
    return not of_seq or member.joined <= of_seq or contains(member.former, of_seq)


STEPS: Steps = {
    4: {
        GroupSent: (needs_sent, step_sent),
        GroupVoided: (needs_voided, step_voided),
        GroupSealed: (needs_sealed, step_sealed),
    },
    5: {
        GroupFired: (needs_fired, step_fired),
    },
}
