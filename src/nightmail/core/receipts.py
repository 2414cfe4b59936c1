"""What became of messages, told to the devices of those who sent them.

Knows:   an account's settings, and the receipts that each of its devices has not acknowledged.
Never:   merges failures of two reasons, or reports a number that nobody acknowledged.

Pending receipts are not a queue but a set: one per (stream, lane, peer device, state), whose
interval grows and whose number moves on with it. So they stay as few as there are conversations.
Failures stand alone while few receipts wait; a device that is away for long finds them in intervals, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from nightmail.model.answers import Done
from nightmail.model.effects import Answer, ReceiptsGrew
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.notes import Looked
from nightmail.model.records import Read, Receipted, ReceiptsAcked, Span
from nightmail.model.refusals import AckAboveHead, UnknownAccount, UnknownDevice
from nightmail.model.rows import Account, Entry, Kept, Need, PendingReceipt, PendingReceipts, ReceiptKey, RowKey, Stream
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.spans import Spans, add_span, count_in, pairs
from nightmail.model.words import Lane, MessageState, Reason

from .groups.verdicts import GroupVerdicts
from .rules import Steps
from .state import NOTHING, ShardState, missing_row

DELIVERED, READ, FAILED, NO_REASON = MessageState.DELIVERED, MessageState.READ, MessageState.FAILED, Reason.NONE
UNDECRYPTABLE, DONE = Reason.UNDECRYPTABLE, Done()


class Verdicts:
    """Collects what one record says about many entries of one device, one receipt per sender.

    A copy of one's own message never changes its ticks. One that could not be opened is told to the
    device that sealed it, which seals it again.
    """

    __slots__ = ("_account", "_delivered", "_device", "_failed", "_in_groups", "_untold", "failures")

    def __init__(self, device: int) -> None:
        self._device, self._account = device, device >> DEVICE_BITS
        self._delivered: dict[int, Spans] = {}
        """Sender → the numbers that are safe on the device."""
        self._failed: dict[tuple[int, int, Reason], Spans] = {}
        """(Sender, account it was sent to, why) → numbers."""
        self._in_groups: GroupVerdicts | None = None
        """Of what came through groups: it is numbered differently."""
        self._untold: list[Reason] = []
        """Why entries have failed of which nobody is told."""
        self.failures = 0

    def deliver(self, by: int, low: int, high: int) -> None:
        """Numbers `low` to `high` of one sender (0: of nobody) are safe on the device."""
        if by and by >> DEVICE_BITS != self._account:
            add_span(self._delivered.setdefault(by, []), low, high)

    def deliver_in_group(self, entry: Entry) -> None:
        """An entry that came through a group is safe on the device."""
        if self._in_groups is None:
            self._in_groups = GroupVerdicts(self._device)
        self._in_groups.deliver(entry)

    def fail(self, entry: Entry, reason: Reason) -> None:
        self.failures += 1
        if entry.epoch:
            if self._in_groups is None:
                self._in_groups = GroupVerdicts(self._device)
            self._in_groups.fail(entry, reason)
        elif entry.by and (reason is UNDECRYPTABLE or entry.by >> DEVICE_BITS != self._account):
            add_span(self._failed.setdefault((entry.by, entry.to, reason), []), entry.n, entry.n)
        else:
            self._untold.append(reason)

    def tell(self, state: ShardState, lane: Lane) -> None:
        to, device, at = self._account, self._device, state.shard.now
        for by, spans in self._delivered.items():
            numbers = ((spans[0], spans[1]),) if len(spans) == 2 else tuple(pairs(spans))
            state.tell(by >> DEVICE_BITS, Receipted(by, to, lane, device, DELIVERED, NO_REASON, at, numbers))
        for (by, to, reason), spans in self._failed.items():
            receipt = Receipted(by, to, lane, device, FAILED, reason, at, tuple(pairs(spans)))
            state.tell(by >> DEVICE_BITS, receipt)
            state.ledger.fail(reason, count_in(spans))
        if self._in_groups is not None:
            self._in_groups.tell(state, lane)
            self._in_groups.count(state)
        for reason in self._untold:
            state.ledger.fail(reason)


# --- reading ----------------------------------------------------------------------------------


def needs_read(state: ShardState, by: int, read: Read) -> list[Need]:
    """The reader's account, and the streams that were read: nobody can have read what was never sent."""
    missing: list[Need] = []
    reader = account_of(by)
    missing_row(state.accounts, Kept.ACCOUNT, reader, missing)
    authors = {span.by for span in read.spans if account_of(span.by) == read.peer}
    missing += [RowKey(Kept.STREAM, author, reader) for author in authors if (author, reader) not in state.streams.rows]
    return missing


def step_read(state: ShardState, by: int, via: int, read: Read) -> None:
    """Tell a sender what was read, unless the reader keeps that to themselves."""
    reader = account_of(by)
    account = state.accounts.rows[reader]
    if account is None or by not in account.devices:
        state.effects.append(Answer(via, UnknownAccount(reader)))
        return
    shown = account.read_receipts and read.peer not in account.blocked
    for (author, lane), spans in _looked_at(state, reader, read).items():
        numbers = tuple(pairs(spans))
        state.notes += [Looked(state.now, by, author, lane, low, high) for low, high in numbers]
        state.noted.update((by, author))
        if shown:
            state.tell(read.peer, Receipted(author, reader, lane, by, READ, NO_REASON, state.now, numbers))
    if via:
        state.effects.append(Answer(via, DONE))


def _looked_at(state: ShardState, reader: int, read: Read) -> dict[tuple[int, Lane], Spans]:
    """(Author, lane) → the numbers of theirs that were read, each once, however often they are listed."""
    looked: dict[tuple[int, Lane], Spans] = {}
    for span in read.spans if read.peer != reader else ():
        if account_of(span.by) != read.peer:
            continue
        stream = state.streams.rows[span.by, reader]
        low, high = max(span.low, 1), min(span.high, _newest(stream, span) if stream else 0)
        if low <= high:
            add_span(looked.setdefault((span.by, span.lane), []), low, high)
    return looked


def _newest(stream: Stream, span: Span) -> int:
    """The newest number of the count that a span is of."""
    if span.low > SCHEDULED_FROM:
        return SCHEDULED_FROM + stream.scheduled
    return stream.lanes[span.lane].last


# --- receiving receipts -----------------------------------------------------------------------


def needs_receipted(state: ShardState, _by: int, receipt: Receipted) -> Sequence[Need]:
    number = receipt.by >> DEVICE_BITS
    if account := state.accounts.rows.get(number):
        receipts = state.receipts.rows
        for device in account.devices:
            if device not in receipts:
                break
        else:
            return NOTHING
    missing: list[Need] = []
    if not missing_row(state.accounts, Kept.ACCOUNT, number, missing) and account is not None:
        for device in account.devices:
            missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    return missing


def step_receipted(state: ShardState, _by: int, _via: int, receipt: Receipted) -> None:
    """Let every device of the sender's account know."""
    account = state.accounts.rows[receipt.by >> DEVICE_BITS]
    if account is None:
        return
    for device in account.devices if receipt.state == DELIVERED else _hearers(account, receipt):
        note(state, device, receipt)


def _hearers(account: Account, receipt: Receipted) -> Iterable[int]:
    """Who is told of anything but the usual."""
    if receipt.state == READ and not account.read_receipts:
        return ()
    if receipt.reason == UNDECRYPTABLE and receipt.device >> DEVICE_BITS == receipt.by >> DEVICE_BITS:
        # A device of one's own could not open it: that is between it and the one that sealed it.
        return (receipt.by,) if receipt.by in account.devices else ()
    return account.devices


def note(state: ShardState, device: int, receipt: Receipted) -> None:
    """Merge a receipt into what one device has yet to hear."""
    receipts = state.receipts.rows[device]
    if receipts is None:
        receipts = state.receipts.rows[device] = PendingReceipts()
    r = receipt
    if r.state == FAILED:
        _note_failures(receipts, r, state.shard.limits.failures_alone - len(receipts.items))
    else:
        _put(receipts, (r.by, r.to, r.lane, r.device, r.state, 0), r, r.numbers)
    state.receipts.changed[device] = state.offset
    state.effects.append(ReceiptsGrew(device))


def _note_failures(receipts: PendingReceipts, r: Receipted, room: int) -> None:
    """The first `room` of them stand alone; the others share an interval with those of the same reason."""
    shared: list[tuple[int, int]] = []
    for low, high in r.numbers:
        first_shared = min(low + max(room, 0), high + 1)
        for n in range(low, first_shared):
            _put(receipts, (r.by, r.to, r.lane, r.device, r.state, n), r, ((n, n),))
        room -= first_shared - low
        if first_shared <= high:
            shared.append((first_shared, high))
    if shared:
        _put(receipts, (r.by, r.to, r.lane, r.device, r.state, -r.reason), r, tuple(shared))


def _put(receipts: PendingReceipts, key: ReceiptKey, receipt: Receipted, numbers: tuple[tuple[int, int], ...]) -> None:
    receipts.head = seq = receipts.head + 1
    pending = receipts.items.pop(key, None) if receipts.items else None
    if pending is None:
        spans: Spans = []
        pending = PendingReceipt(key, seq, receipt.at, receipt.reason, spans)
    else:
        pending.seq, pending.at, pending.reason, spans = seq, receipt.at, receipt.reason, pending.numbers
    for low, high in numbers:
        add_span(spans, low, high)
    receipts.items[key] = pending


# --- handing receipts out ---------------------------------------------------------------------


def needs_receipts(state: ShardState, device: int) -> Sequence[Need]:
    if device in state.receipts.rows:
        return NOTHING
    missing: list[Need] = []
    missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    return missing


def receipts_after(state: ShardState, device: int, after: int, limit: int) -> list[PendingReceipt]:
    """The oldest receipts behind `after`. The numbers grow, but are not without holes."""
    receipts = state.receipts.rows[device]
    if receipts is None or receipts.head <= after:
        return []
    return [receipt for receipt in receipts.items.values() if receipt.seq > after][:limit]


def needs_receipts_acked(state: ShardState, by: int, _acked: ReceiptsAcked) -> Sequence[Need]:
    """The receipts; if there never were any, the mailbox, which tells whether there is such a device."""
    if state.receipts.rows.get(by) is not None:
        return NOTHING
    missing: list[Need] = []
    if not missing_row(state.receipts, Kept.RECEIPTS, by, missing):
        missing_row(state.mailboxes, Kept.MAILBOX, by, missing)
    return missing


def step_receipts_acked(state: ShardState, by: int, via: int, acked: ReceiptsAcked) -> None:
    """These receipts are safe on the device. One that moved on since has a higher number, and stays."""
    receipts, upto = state.receipts.rows[by], acked.upto
    if receipts is None and state.mailboxes.rows[by] is None:
        state.effects.append(Answer(via, UnknownDevice(by)))
        return
    head = receipts.head if receipts else 0
    if upto > head:
        state.effects.append(Answer(via, AckAboveHead(head)))
        return
    if via:
        state.effects.append(Answer(via, DONE))
    if receipts is None:
        return
    items = receipts.items
    heard = list(items if upto == receipts.head else takewhile(lambda key: items[key].seq <= upto, items))
    if not heard:
        return  # A repeated or late ack says nothing new.
    for key in heard:
        del items[key]
    state.receipts.changed[by] = state.offset


STEPS: Steps = {
    1: {
        ReceiptsAcked: (needs_receipts_acked, step_receipts_acked),
        Read: (needs_read, step_read),
        Receipted: (needs_receipted, step_receipted),
    }
}
OPTIMISTIC = {ReceiptsAcked}
