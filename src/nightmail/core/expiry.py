"""How entries end without having been delivered: too old, or their device is no more.

Knows:   one mailbox, its entries and its clock.
Touches: the mailbox; through `tell`, the receipts of the devices that sent what is dropped.

Every ending leaves a gap for the device (if there still is one) and a failure for the sender.
"""

from __future__ import annotations

from nightmail.model.notes import Dropped
from nightmail.model.records import Expired, Watched
from nightmail.model.rows import DueItem, Entry, Mailbox, Need, queue_id
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
        if entry := state.entries.get(queue_id(expired.device, expired.lane), {}).get(expired.seq):
            if due.too_early_until(state, expired.planned, entry.at, _life_ms(state, entry)):
                state.derived.append(Watched(expired.device, expired.lane, expired.seq, expired.planned))
            else:
                _drop(state, expired.device, mailbox, expired.lane, [expired.seq])
        return
    for lane in Lane:
        _drop(state, expired.device, mailbox, lane, _too_old(state, expired.device, lane, mailbox))
    state.derived.append(Watched(expired.device))


def _life_ms(state: ShardState, entry: Entry) -> int:
    return entry.life_ms or state.shard.limits.ttl_ms


def _filed_at(state: ShardState, mailbox: Mailbox, lane: int, seq: int, entry: Entry) -> int:
    """When an entry was filed, by its stamp; at the latest when the clock was set back, if it was there by then."""
    shard = state.shard
    if not shard.set_backs or (mailbox.set_backs == shard.set_backs and seq > mailbox.before_set_back[lane]):
        return due.filed_at(state, entry.at)
    return min(due.filed_at(state, entry.at), shard.set_back_to)


def _too_old(state: ShardState, device: int, lane: Lane, mailbox: Mailbox) -> list[int]:
    """The oldest entries that have outlived the mailbox's limit, as many as one tick looks at."""
    limits, queue = state.shard.limits, mailbox.lanes[lane]
    entries = state.entries.get(queue_id(device, lane), {})
    low = first_waiting(queue)
    old: list[int] = []
    for seq in range(low, min(queue.head, low + limits.tick_items - 1) + 1):
        if (entry := entries.get(seq)) is None:
            continue
        if not limits.ttl_ms or _filed_at(state, mailbox, lane, seq, entry) + limits.ttl_ms > state.now:
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
    state.ledger.waiting -= len(seqs)
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
    if watched.seq:
        needs_entry(state, device, watched.lane, watched.seq, missing)
        moment = 0 if missing else _end_of(state, watched)
    else:
        needs_front(state, device, 1, missing)
        moment = 0 if missing else _next_look(state, device)
    if moment:
        due.needs_schedule(state, moment, 1, missing)
    return missing


def step_watched(state: ShardState, _by: int, _via: int, watched: Watched) -> None:
    device = watched.device
    mailbox = state.mailboxes[device]
    if mailbox is None:
        return
    if watched.seq:
        if moment := _end_of(state, watched):
            due.schedule(state, moment, DueItem(device, watched.lane, watched.seq, planned=watched.planned))
        return
    mailbox.due = _next_look(state, device)
    state.mailboxes.put(device, mailbox, state.offset)
    if mailbox.due:
        due.schedule(state, mailbox.due, DueItem(device, Lane.NORMAL, 0))


def _end_of(state: ShardState, watched: Watched) -> int:
    """The moment at which one entry's timer ends; 0 if the entry is no more."""
    entry = state.entries.get(queue_id(watched.device, watched.lane), {}).get(watched.seq)
    return due.too_early_until(state, watched.planned, entry.at, _life_ms(state, entry)) if entry else 0


def _next_look(state: ShardState, device: int) -> int:
    """The moment at which the oldest waiting entry will be too old; 0 if none waits."""
    mailbox, ttl_ms = state.mailboxes[device], state.shard.limits.ttl_ms
    if mailbox is None or not ttl_ms:
        return 0
    oldest = [
        _filed_at(state, mailbox, lane, seq, state.entries[queue_id(device, lane)][seq])
        for lane, queue in enumerate(mailbox.lanes)
        if queue.waiting and (seq := first_waiting(queue))
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
        state.ledger.waiting -= queue.waiting
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
