"""A device's queues: file an entry, hand entries out, take the acknowledgement.

Knows:   one mailbox and the entries of its two lanes.
Touches: the mailbox; through `tell`, the sender's receipts.

The number is given in the same step that files the entry. What will never come is a gap, and a
gap is handed out like an entry, so a device can always tell "not yet" from "never".
"""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.effects import Answer, Grew
from nightmail.model.ids import account_of
from nightmail.model.notes import Taken
from nightmail.model.records import Acked
from nightmail.model.refusals import AckAboveHead, UnknownDevice
from nightmail.model.rows import DueItem, Entry, EntryRange, Gap, Kept, Mailbox, Need, Queue, queue_id
from nightmail.model.words import Kind, Lane, Reason

from . import due, shares, waking
from .gaps import drop_gaps, first_waiting, gap_at
from .receipts import Verdicts
from .rules import Steps
from .state import Entries, ShardState, missing_row

CONTROL, UNDECRYPTABLE, DONE = Kind.CONTROL, Reason.UNDECRYPTABLE, Done()
NO_ENTRIES: Entries = {}

# --- filing -----------------------------------------------------------------------------------


def needs_filing(state: ShardState, device: int, life_ms: int, count: int, missing: list[Need]) -> None:
    """What `file` will touch for this device, one of `count`: its mailbox and, if a clock must be set, the due rows."""
    if mailbox := _needs_mailbox(state, device, missing):
        if moment := _clock(state, mailbox, _timer_ms(state, life_ms)):
            due.needs_schedule(state, moment, count, missing)
        waking.needs_begin(state, mailbox, count, missing)


def look_at_clock(state: ShardState, mailbox: Mailbox, life_ms: int, count: int) -> None:
    """Raise KeyError unless the due rows that `file` will touch for `count` devices are in memory."""
    if moment := _clock(state, mailbox, _timer_ms(state, life_ms)):
        due.look(state, moment, count)
    if mailbox.push:
        missing: list[Need] = []
        waking.needs_begin(state, mailbox, count, missing)
        if missing:
            raise KeyError(*missing)


def is_full(state: ShardState, mailbox: Mailbox) -> bool:
    limits = state.shard.limits
    normal, high = mailbox.lanes
    return normal.waiting + high.waiting >= limits.mailbox_entries or mailbox.bytes >= limits.mailbox_bytes


def file(state: ShardState, device: int, mailbox: Mailbox, lane: Lane, entry: Entry) -> int:
    """Give the entry its number, keep it, and say that there is something new."""
    queue, life_ms = mailbox.lanes[lane], entry.life_ms
    if state.shard.newest_time:
        life_ms = _timer_ms(state, life_ms)
        _notice_set_back(state, mailbox)
    queue.head = seq = queue.head + 1
    queue.waiting += 1
    state.ledger.waiting += 1
    size = len(entry.ciphertext)
    mailbox.bytes += size
    if state.counts_waking and entry.kind is not CONTROL:
        if mailbox.push and not mailbox.waking:
            waking.begin(state, device, mailbox)
        mailbox.waking += 1
    if mailbox.shared:
        shares.add(state, device, entry.by, size)
    state.filed_bytes += size
    number = device << 1 | lane
    entries = state.entries.get(number)
    if entries is None:
        state.entries[number] = {seq: entry}
    else:
        entries[seq] = entry
    if number not in state.filed:
        state.filed[number] = seq
    if (life_ms or not mailbox.due) and (moment := _clock(state, mailbox, life_ms)):
        if life_ms:
            due.schedule(state, moment, DueItem(device, lane, seq, planned=due.planned_now(state)))
        else:
            mailbox.due = moment
            due.schedule(state, moment, DueItem(device, lane, 0))
    state.mailboxes.changed[device] = state.offset
    state.effects.append(Grew(device, lane))
    return seq


def _timer_ms(state: ShardState, life_ms: int) -> int:
    """The timer that an entry gets of its own; 0: its mailbox's clock will do.

    While stamps may stand ahead of a clock that was set back, an entry's stamp does not tell when it was filed.
    """
    shard = state.shard
    return life_ms or (shard.limits.ttl_ms if shard.newest_time > shard.now else 0)


def _notice_set_back(state: ShardState, mailbox: Mailbox) -> None:
    """Before the first entry since the clock was set back is filed: what is there by now was filed before."""
    if mailbox.set_backs != state.shard.set_backs:
        normal, high = mailbox.lanes
        mailbox.set_backs, mailbox.before_set_back = state.shard.set_backs, (normal.head, high.head)


def _clock(state: ShardState, mailbox: Mailbox, life_ms: int) -> int:
    """The moment at which an entry that is filed now must be looked at; 0 if the mailbox's own clock will do."""
    if life_ms:
        # Counted from the server's clock, not from the stamp, which may stand a little ahead of it.
        return due.moment_of(state, state.now + life_ms)
    ttl_ms = state.shard.limits.ttl_ms
    return due.moment_of(state, state.now + ttl_ms) if ttl_ms and not mailbox.due else 0


# --- handing out ------------------------------------------------------------------------------


def needs_offer(state: ShardState, device: int, lane: Lane, after: int, limit: int) -> list[Need]:
    """What must be in memory before `offer` can be asked the same question."""
    missing: list[Need] = []
    if mailbox := _needs_mailbox(state, device, missing):
        queue = mailbox.lanes[lane]
        low = max(after, queue.acked) + 1
        _needs_entries(state, queue, queue_id(device, lane), low, min(queue.head, low + limit - 1), missing)
    return missing


def offer(state: ShardState, device: int, lane: Lane, after: int, limit: int) -> list[tuple[int, Entry] | Gap]:
    """What stands behind `after`, in order and without holes: entries with their numbers, and gaps."""
    mailbox = state.mailboxes.rows[device]
    if mailbox is None:
        return []
    queue = mailbox.lanes[lane]
    entries = state.entries.get(queue_id(device, lane), {})
    seq = max(after, queue.acked) + 1
    last = min(queue.head, seq + limit - 1)
    if not queue.gaps:
        return [(seq, entries[seq]) for seq in range(seq, last + 1)]
    offered: list[tuple[int, Entry] | Gap] = []
    while seq <= last:
        if (entry := entries.get(seq)) is not None:
            offered.append((seq, entry))
            seq += 1
        else:
            gap = gap_at(queue.gaps, seq)
            assert gap is not None, (device, lane, seq)
            offered.append(Gap(seq, gap.high, gap.reason))
            seq = gap.high + 1
    return offered


# --- acknowledging ----------------------------------------------------------------------------


def needs_acked(state: ShardState, by: int, acked: Acked) -> list[Need]:
    missing: list[Need] = []
    if mailbox := _needs_mailbox(state, by, missing):
        queue = mailbox.lanes[acked.lane]
        if acked.upto <= queue.head:
            _needs_entries(state, queue, by << 1 | acked.lane, queue.acked + 1, acked.upto, missing)
    return missing


def step_acked(state: ShardState, by: int, via: int, acked: Acked) -> None:
    """Everything up to `upto` is safe on the device: forget it here, and let its senders know."""
    mailbox = state.mailboxes.rows[by]
    if mailbox is None:
        state.effects.append(Answer(via, UnknownDevice(by)))
        return
    lane, upto = acked.lane, acked.upto
    queue, number = mailbox.lanes[lane], by << 1 | lane
    if upto > queue.head:
        state.effects.append(Answer(via, AckAboveHead(queue.head)))
        return
    low, entries = queue.acked + 1, state.entries.get(number, NO_ENTRIES)
    if len(entries) != queue.waiting:
        _look_at_entries(state, queue, number, low, upto)
    if mailbox.shared:
        shares.let_go(state, by, [entries[seq] for seq in range(low, upto + 1) if seq in entries])
    if via:
        # Asked for by a client that must know when it may forget which numbers it could not open.
        state.effects.append(Answer(via, DONE))
    if upto < low:
        return  # A repeated or late ack says nothing new.
    queue.acked = upto
    taken = len(entries)
    before = mailbox.bytes
    verdicts = _take(mailbox, entries, by, low, upto, frozenset(acked.unreadable))
    taken -= len(entries)
    queue.waiting -= taken
    ledger = state.ledger
    ledger.waiting -= taken
    ledger.delivered += taken - verdicts.failures
    verdicts.tell(state, lane)
    if queue.gaps:
        drop_gaps(queue.gaps, upto)
    if state.stored.get(number, 0) >= low:
        state.cleared[number] = upto
    else:
        state.filed_bytes -= before - mailbox.bytes
    if mailbox.shared:
        shares.forget_if_sparse(state, by, mailbox)
    state.mailboxes.changed[by] = state.offset
    state.notes.append(Taken(state.shard.now, by, lane, low, upto, acked.unreadable))


def _take(mailbox: Mailbox, entries: Entries, device: int, low: int, high: int, unreadable: frozenset[int]) -> Verdicts:
    """Let go of the entries from `low` to `high`; returns what their senders are to be told."""
    verdicts = Verdicts(device)
    if low == high and not unreadable and (entry := entries.pop(low, None)) is not None:
        mailbox.let_go(len(entry.ciphertext), entry.kind is not CONTROL)
        if entry.epoch:
            verdicts.deliver_in_group(entry)
        else:
            verdicts.deliver(entry.by, entry.n, entry.n)  # What a phone says most of the time.
        return verdicts
    by, first, last, size, wakers = 0, 0, 0, 0, 0
    for seq in range(low, high + 1):
        entry = entries.pop(seq, None)
        if entry is None:
            continue  # A gap: its sender was told when it arose.
        size += len(entry.ciphertext)
        wakers += entry.kind is not CONTROL
        if entry.n != last + 1 or entry.by != by or entry.epoch or seq in unreadable:
            # Anything but the usual case: one more of the same sender.
            if by:
                verdicts.deliver(by, first, last)
            by, first = entry.by, entry.n
            if seq in unreadable:
                verdicts.fail(entry, UNDECRYPTABLE)
                by = 0
            elif entry.epoch:
                verdicts.deliver_in_group(entry)
                by = 0
        last = entry.n
    mailbox.let_go(size, wakers)
    verdicts.deliver(by, first, last)
    return verdicts


# --- what must be in memory -------------------------------------------------------------------


def needs_entry(state: ShardState, device: int, lane: Lane, seq: int, missing: list[Need]) -> None:
    """One entry, if it still waits."""
    if mailbox := _needs_mailbox(state, device, missing):
        queue = mailbox.lanes[lane]
        if seq > queue.acked:
            _needs_entries(state, queue, queue_id(device, lane), seq, seq, missing)


def page(mailbox: Mailbox, lane: Lane, seq: int, count: int) -> tuple[int, int]:
    """The first and the last of the next `count` sequence numbers from `seq` on."""
    queue = mailbox.lanes[lane]
    low = max(seq, queue.acked + 1)
    return low, min(queue.head, low + count - 1)


def needs_page(state: ShardState, device: int, lane: Lane, seq: int, count: int, missing: list[Need]) -> Mailbox | None:
    """A mailbox with the entries of one `page`; None if it is not in memory yet, or no more."""
    if mailbox := _needs_mailbox(state, device, missing):
        low, high = page(mailbox, lane, seq, count)
        _needs_entries(state, mailbox.lanes[lane], queue_id(device, lane), low, high, missing)
    return mailbox


def needs_front(state: ShardState, device: int, count: int, missing: list[Need]) -> None:
    """The `count` oldest entries of both lanes."""
    if mailbox := _needs_mailbox(state, device, missing):
        for lane, queue in enumerate(mailbox.lanes):
            low = first_waiting(queue)
            high = min(queue.head, low + count - 1)
            _needs_entries(state, queue, queue_id(device, lane), low, high, missing)


def needs_whole(state: ShardState, device: int, missing: list[Need]) -> None:
    """A mailbox with everything in it."""
    if mailbox := _needs_mailbox(state, device, missing):
        for lane, queue in enumerate(mailbox.lanes):
            _needs_entries(state, queue, queue_id(device, lane), queue.acked + 1, queue.head, missing)


def needs_shares(state: ShardState, device: int, size: int, missing: list[Need]) -> None:
    """What `shares.look` will touch for one more entry of `size` bytes: if nothing is counted yet, all that waits."""
    mailbox = state.mailboxes.rows.get(device)
    if mailbox is None:
        return
    if mailbox.shared:
        missing_row(state.shares, Kept.SHARES, device, missing)
    if shares.is_crowded(state, mailbox, size):
        missing_row(state.known, Kept.KNOWN, account_of(device), missing)
        if not mailbox.shared and not missing_row(state.shares, Kept.SHARES, device, missing):
            needs_whole(state, device, missing)


def look_at_shares(state: ShardState, device: int, size: int) -> None:
    """Raise KeyError unless the rows that tell whose entries wait are in memory."""
    missing: list[Need] = []
    needs_shares(state, device, size, missing)
    if missing:
        raise KeyError(*missing)


def _needs_mailbox(state: ShardState, device: int, missing: list[Need]) -> Mailbox | None:
    if missing_row(state.mailboxes, Kept.MAILBOX, device, missing):
        return None
    mailbox = state.mailboxes.rows[device]
    if mailbox is not None and mailbox.shared:
        missing_row(state.shares, Kept.SHARES, device, missing)
    return mailbox


def _look_at_entries(state: ShardState, queue: Queue, number: int, low: int, high: int) -> None:
    """Raise KeyError unless these entries are in memory."""
    missing: list[Need] = []
    _needs_entries(state, queue, number, low, high, missing)
    if missing:
        raise KeyError(*missing)


def _needs_entries(state: ShardState, queue: Queue, number: int, low: int, high: int, missing: list[Need]) -> None:
    if low > high:
        return
    entries = state.entries.get(number, {})
    if len(entries) == queue.waiting:
        return  # All of them are in memory.
    seq = low
    while seq <= high:
        if seq in entries:
            seq += 1
        elif gap := gap_at(queue.gaps, seq):
            seq = gap.high + 1
        else:
            missing.append(EntryRange(number, seq, high))
            return


STEPS: Steps = {1: {Acked: (needs_acked, step_acked)}}
OPTIMISTIC = {Acked}
