"""A large group's log: an entry is stored once, and each device has a cursor.

Knows:   the group's own mailbox, which is that of its device 0: entries lie in it under their `group_seq`.
Touches: that mailbox, the row of the devices that have seen everything, the due rows; through `tell`, their shards.

Numbers that are not in the log were filed on write, or were dropped: they are gaps. A device at the end of the log is
told once that there is more, by its own shard; until it has caught up it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.core import due, mailbox
from nightmail.core.gaps import drop_gaps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.group_rows import AtHead, FanOut, Group, MemberDevice
from nightmail.model.ids import account_of, log_of, shard_of
from nightmail.model.limits import FoldLimits
from nightmail.model.records import GroupMarked, GroupSwept
from nightmail.model.rows import DueFor, DueItem, Gap, GroupEntry, Kept, Mailbox, Need, queue_id
from nightmail.model.words import Lane, Reason

SWEEP_MS = 60_000
"""How often cursors are looked at while there is something in the log."""


# --- which way of fan-out -----------------------------------------------------------------------


def fan_out_for(present: FanOut, joined: int, limits: FoldLimits) -> FanOut:
    """By size. A border that was crossed is crossed back only a tenth below it."""
    write, read = limits.group_write_members, limits.group_read_members
    if joined > read or (present is FanOut.READ and 10 * joined >= 9 * read):
        return FanOut.READ
    if joined > write or (present is not FanOut.WRITE and 10 * joined >= 9 * write):
        return FanOut.HYBRID
    return FanOut.WRITE


def settle_fan_out(state: ShardState, number: int, group: Group) -> None:
    """The number of members has changed. From the next number on, entries may go elsewhere."""
    before, group.fan_out = group.fan_out, fan_out_for(group.fan_out, group.joined, state.shard.limits)
    if before is FanOut.WRITE and group.fan_out is not FanOut.WRITE:
        state.at_head.put(number, AtHead(everybody=True), state.offset)


def note_at_head(state: ShardState, number: int, group: Group, devices: dict[int, MemberDevice]) -> None:
    """Of these devices, those that have seen everything are told when there is more."""
    row = state.at_head[number] or AtHead()
    for device, member in devices.items():
        if member.cursor >= group.seq:
            row.devices[device] = group.seq
    state.at_head.put(number, row, state.offset)


# --- appending ----------------------------------------------------------------------------------


def needs_log(state: ShardState, number: int, life_ms: int, missing: list[Need]) -> None:
    """What an append may touch. Where a group fans out on write, that is little."""
    missing_row(state.mailboxes, Kept.MAILBOX, log_of(number), missing)
    missing_row(state.at_head, Kept.AT_HEAD, number, missing)
    group = state.groups.rows.get(number)
    if group is not None and group.fan_out is not FanOut.WRITE:
        mailbox.needs_filing(state, log_of(number), life_ms, 1, missing)
        if not group.sweeps:
            due.needs_schedule(state, _next_sweep(state), 1, missing)


def append(
    state: ShardState, number: int, group: Group, entry: GroupEntry, audience: Iterable[tuple[int, int]]
) -> None:
    """File an entry under the group's newest number, and tell those who have seen everything before it."""
    device, before = log_of(number), group.seq - 1
    box = state.mailboxes.there(device)
    queue = box.lanes[Lane.NORMAL]
    if not queue.waiting:
        queue.gaps.clear()
        queue.acked = queue.head = before
    elif queue.head < before:
        queue.gaps.append(Gap(queue.head + 1, before, Reason.KEPT_ELSEWHERE))
        queue.head = before
    state.ledger.owed += 1
    mailbox.file(state, device, box, Lane.NORMAL, entry)
    if not group.sweeps:
        group.sweeps = True
        schedule_sweep(state, number)
    if box.bytes > state.shard.limits.group_log_bytes:
        state.derived.append(GroupSwept(number, fired=False))
    _mark(state, number, group, audience)


def _mark(state: ShardState, number: int, group: Group, audience: Iterable[tuple[int, int]]) -> None:
    row = state.at_head[number]
    if row is None or not (row.everybody or row.devices):
        return
    accounts: dict[int, list[tuple[int, int]]] = {}
    devices: dict[int, list[int]] = {}
    if row.everybody:
        for member in audience:
            accounts.setdefault(shard_of(member[0], state.shards), []).append(member)
    else:
        for device in row.devices:
            devices.setdefault(shard_of(account_of(device), state.shards), []).append(device)
    for shard in {**accounts, **devices}:
        marked = GroupMarked(number, group.seq, tuple(accounts.get(shard, ())), tuple(devices.get(shard, ())))
        state.tell(marked.home(0), marked)
    state.at_head.put(number, AtHead(), state.offset)


# --- trimming -----------------------------------------------------------------------------------


def _next_sweep(state: ShardState) -> int:
    return due.moment_of(state, state.now + SWEEP_MS)


def needs_sweep_again(state: ShardState, missing: list[Need]) -> None:
    due.needs_schedule(state, _next_sweep(state), 1, missing)


def schedule_sweep(state: ShardState, number: int) -> None:
    due.schedule(state, _next_sweep(state), DueItem(0, Lane.NORMAL, number, DueFor.GROUP_LOG))


def trim(state: ShardState, number: int, box: Mailbox, upto: int) -> None:
    """Everybody has everything up to here. The entries are in memory."""
    device, queue = log_of(number), box.lanes[Lane.NORMAL]
    low, upto = queue.acked + 1, min(upto, queue.head)
    if upto < low:
        return
    of_queue = queue_id(device, Lane.NORMAL)
    entries = state.entries.get(of_queue, {})
    for seq in range(low, upto + 1):
        if (entry := entries.pop(seq, None)) is not None:
            queue.waiting -= 1
            state.ledger.waiting -= 1
            state.ledger.delivered += 1
            box.let_go(len(entry.ciphertext), entry.wakes)
    queue.acked = upto
    drop_gaps(queue.gaps, upto)
    if state.stored.get(of_queue, 0) >= low:
        state.cleared[of_queue] = upto
    state.mailboxes.put(device, box, state.offset)
