"""Who is addressed, and the records that carry it to their shards.

Knows:   a group, its roster, and which shard each member lives on.
Touches: through `tell`, the members' shards.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.core.state import ShardState
from nightmail.model.group_notices import GroupNotice, encode_notice
from nightmail.model.group_rows import FanOut, Group, GroupRoster, MemberState
from nightmail.model.ids import DEVICE_BITS, SERVER, account_of, log_of, shard_of
from nightmail.model.notes import Placed
from nightmail.model.records import Fanned, GroupSent, Receipted
from nightmail.model.rows import GroupEntry
from nightmail.model.words import Kind, Lane, MessageState, Reason

from .log import append

PART = 128
"""Accounts in one record: each has mailboxes to be read."""

Audience = Iterable[tuple[int, int]]
"""(Account, the revision of its devices that the group knows)."""


def audience_of(roster: GroupRoster) -> Audience:
    """Everybody who has joined. Nobody is looked at before somebody asks: a large group's log rarely does."""
    joined = MemberState.JOINED
    return ((account, entry.revision) for account, entry in roster.members.items() if entry.state is joined)


def fan_message(state: ShardState, group: Group, roster: GroupRoster, by: int, sent: GroupSent, life_ms: int) -> None:
    if group.fan_out is not FanOut.WRITE:
        s = sent
        entry = GroupEntry(
            by, s.group, s.n, s.id, s.tag, s.kind, None, group.at, life_ms, s.ciphertext, group.seq, group.epoch, s.lane
        )
        append(state, s.group, group, entry, audience_of(roster))
        _fail_without_devices(state, group, by, sent)
        state.notes.append(
            Placed(group.at, by, s.group, s.lane, s.n, s.id, None, False, False, ((log_of(s.group), group.seq),))
        )
        return
    fan_late(state, by, sent, life_ms, group.at, group.seq, audience_of(roster))


def fan_late(
    state: ShardState, by: int, sent: GroupSent, life_ms: int, at: int, group_seq: int, audience: Audience
) -> None:
    """A message that has its stamp and its number already, into the mailboxes of some."""
    s = sent
    for part in _parts(state, audience):
        fanned = Fanned(
            s.group, by, s.lane, s.n, s.id, s.tag, s.kind, life_ms, at, group_seq, s.epoch, part, s.ciphertext
        )
        state.ledger.carried += len(part)
        state.tell(part[0][0], fanned)


def _fail_without_devices(state: ShardState, group: Group, by: int, sent: GroupSent) -> None:
    """A member without any device fails as a whole, as on write: nobody would ever fetch it."""
    author, numbers = account_of(by), ((sent.n, sent.n),)
    for account in group.without_devices:
        if account != author:
            failed = Receipted(
                by, sent.group, sent.lane, account << DEVICE_BITS, MessageState.FAILED, Reason.DEVICE_REMOVED,
                state.now, numbers,
            )  # fmt: skip
            state.tell(author, failed)
            state.ledger.owed += 1
            state.ledger.fail(Reason.DEVICE_REMOVED)


def fan_notice(state: ShardState, number: int, group: Group, audience: Audience, notice: GroupNotice) -> None:
    """Everybody in the audience learns it, under the group's next number."""
    group.seq += 1
    if group.fan_out is FanOut.WRITE:
        _fan_notice(state, number, group, audience, notice, group.seq)
        return
    group.at = max(state.now, group.at + 1)
    entry = GroupEntry(
        SERVER, number, 0, "", b"", Kind.CONTROL, None, group.at, 0, encode_notice(notice), group.seq, group.epoch,
        Lane.NORMAL,
    )  # fmt: skip
    append(state, number, group, entry, audience)


def fan_to_some(state: ShardState, number: int, group: Group, audience: Audience, notice: GroupNotice) -> None:
    """Likewise, but it concerns nobody else, and so takes no number."""
    _fan_notice(state, number, group, audience, notice, 0)


def _fan_notice(
    state: ShardState, number: int, group: Group, audience: Audience, notice: GroupNotice, seq: int
) -> None:
    group.at = max(state.now, group.at + 1)
    content = encode_notice(notice)
    for part in _parts(state, audience):
        fanned = Fanned(
            number, SERVER, Lane.NORMAL, 0, "", b"", Kind.CONTROL, 0, group.at, seq, group.epoch, part, content
        )
        state.ledger.carried += len(part)
        state.tell(part[0][0], fanned)


def _parts(state: ShardState, audience: Audience) -> Iterable[tuple[tuple[int, int], ...]]:
    by_shard: dict[int, list[tuple[int, int]]] = {}
    if state.shards == 1:
        by_shard[0] = list(audience)
    else:
        for member in audience:
            by_shard.setdefault(shard_of(member[0], state.shards), []).append(member)
    for members in by_shard.values():
        for first in range(0, len(members), PART):
            yield tuple(members[first : first + PART])
