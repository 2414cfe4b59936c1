"""How entries end without having been delivered: too old, or their device is no more.

Knows:   one mailbox, its entries and its clock.
Touches: the mailbox; through `tell`, the receipts of the devices that sent what is dropped.

Every ending leaves a gap for the device (if there still is one) and a failure for the sender.
"""

from __future__ import annotations

from nightmail.model.notes import Dropped
from nightmail.model.records import Expired, Watched
from nightmail.model.rows import DueItem, Entry, Mailbox, Need, Queue, queue_id
from nightmail.model.words import Lane, Reason

from . import due, shares
from .gaps import add_gap, first_waiting
from .mailbox import needs_entry, needs_front
from .receipts import Verdicts
from .rules import Steps
from .state import ShardState

# --- too old ----------------------------------------------------------------------------------


def needs_expired(state: ShardState, _by: int, expired: Expired) -> list[Need]:
    missing: list[Need] = []
    if expired.seq:
        needs_entry(state, expired.device, expired.lane, expired.seq, missing)
    else:
        # Most often only the first of them is too old. But to find that out before the others are asked for
        # would be a third load, after the mailbox's own.
        needs_front(state, expired.device, state.shard.limits.tick_items, missing)
    return missing


def step_expired(state: ShardState, _by: int, _via: int, expired: Expired) -> None:
    mailbox = state.mailboxes[expired.device]
    if mailbox is None:
        return
    if expired.seq:
        # Its device may have acknowledged it meanwhile: then there is nothing left to drop.
        if expired.seq in state.entries.get(queue_id(expired.device, expired.lane), {}):
            _drop(state, expired.device, mailbox, expired.lane, [expired.seq])
        return
    for lane in Lane:
        _drop(state, expired.device, mailbox, lane, _too_old(state, expired.device, lane, mailbox.lanes[lane]))
    state.derived.append(Watched(expired.device))


def _too_old(state: ShardState, device: int, lane: Lane, queue: Queue) -> list[int]:
    """The oldest entries that have outlived the mailbox's limit, as many as one tick looks at."""
    limits = state.shard.limits
    entries = state.entries.get(queue_id(device, lane), {})
    low = first_waiting(queue)
    old: list[int] = []
    for seq in range(low, min(queue.head, low + limits.tick_items - 1) + 1):
        if (entry := entries.get(seq)) is None:
            continue
        if not limits.ttl_ms or entry.at + limits.ttl_ms > state.now:
            break
        old.append(seq)
    return old


def _drop(state: ShardState, device: int, mailbox: Mailbox, lane: Lane, seqs: list[int]) -> None:
    """End these entries as expired: a gap for the device, a failure for each sender."""
    if not seqs:
        return
    verdicts = Verdicts(device)
    for seq, entry in zip(seqs, make_gaps(state, device, mailbox, lane, seqs), strict=True):
        _fail(state, verdicts, device, lane, seq, entry, Reason.EXPIRED)
    verdicts.tell(state, lane)


def make_gaps(state: ShardState, device: int, mailbox: Mailbox, lane: Lane, seqs: list[int]) -> list[Entry]:
    """Leave a gap in place of each of these entries; returns them."""
    queue, number = mailbox.lanes[lane], queue_id(device, lane)
    ended = [state.entries[number].pop(seq) for seq in seqs]
    if mailbox.shared:
        shares.let_go(state, device, ended)
    for seq, entry in zip(seqs, ended, strict=True):
        queue.waiting -= 1
        mailbox.let_go(len(entry.ciphertext), entry.wakes)
        add_gap(queue.gaps, seq, Reason.EXPIRED)
        if state.stored.get(number, 0) >= seq:
            state.dropped.append((number, seq))
    if mailbox.shared:
        shares.forget_if_sparse(state, device, mailbox)
    state.mailboxes.put(device, mailbox, state.offset)
    return ended


def _fail(
    state: ShardState, verdicts: Verdicts, device: int, lane: Lane, seq: int, entry: Entry, reason: Reason
) -> None:
    state.notes.append(Dropped(state.now, device, lane, seq, reason))
    verdicts.fail(entry, reason)


# --- the clock --------------------------------------------------------------------------------


def needs_watched(state: ShardState, _by: int, watched: Watched) -> list[Need]:
    device = watched.device
    missing: list[Need] = []
    needs_front(state, device, 1, missing)
    if not missing and (moment := _next_look(state, device)):
        due.needs_schedule(state, moment, 1, missing)
    return missing


def step_watched(state: ShardState, _by: int, _via: int, watched: Watched) -> None:
    device = watched.device
    mailbox = state.mailboxes[device]
    if mailbox is None:
        return
    mailbox.due = _next_look(state, device)
    state.mailboxes.put(device, mailbox, state.offset)
    if mailbox.due:
        due.schedule(state, mailbox.due, DueItem(device, Lane.NORMAL, 0))


def _next_look(state: ShardState, device: int) -> int:
    """The moment at which the oldest waiting entry will be too old; 0 if none waits."""
    mailbox, ttl_ms = state.mailboxes[device], state.shard.limits.ttl_ms
    if mailbox is None or not ttl_ms:
        return 0
    oldest = [
        state.entries[queue_id(device, lane)][first_waiting(queue)].at
        for lane, queue in enumerate(mailbox.lanes)
        if queue.waiting
    ]
    if not oldest:
        return 0
    # At least one second on: when one tick could not drop them all, the next one goes on.
    return max(due.moment_of(state, min(oldest) + ttl_ms), due.moment_of(state, state.now + due.SECOND_MS))


# --- the device is no more --------------------------------------------------------------------


def end_mailbox(state: ShardState, device: int) -> None:
    """Close a mailbox for good. Its entries' senders are told; its receipts have no reader any more."""
    mailbox = state.mailboxes[device]
    if mailbox is None:
        return
    for lane in Lane:
        queue, number = mailbox.lanes[lane], queue_id(device, lane)
        verdicts = Verdicts(device)
        for seq, entry in sorted(state.entries.pop(number, {}).items()):
            _fail(state, verdicts, device, lane, seq, entry, Reason.DEVICE_REMOVED)
        state.filed.pop(number, None)
        if state.stored.get(number, 0) > queue.acked:
            state.cleared[number] = queue.head
        verdicts.tell(state, lane)
    if mailbox.shared:
        state.shares.put(device, None, state.offset)
    state.mailboxes.put(device, None, state.offset)
    state.receipts.put(device, None, state.offset)


STEPS: Steps = {1: {Expired: (needs_expired, step_expired), Watched: (needs_watched, step_watched)}}
