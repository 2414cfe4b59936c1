"""What became of messages, told to the devices of those who sent them.

Knows:   an account's settings, and the receipts that each of its devices has not acknowledged.
Never:   merges failures of two reasons, or reports a number that nobody acknowledged.

Receipts are not a queue but a set of changes: one per (stream, lane, peer device, state), whose
interval grows and whose number moves on with it. So they stay as few as there are conversations.
Failures stand alone while few receipts wait; a device that is away for long finds them in intervals, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from nightmail.model.answers import Done
from nightmail.model.effects import Answer, Changed
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.notes import Looked
from nightmail.model.records import ChangesAcked, Read, Receipted
from nightmail.model.refusals import AckAboveHead, UnknownAccount, UnknownDevice
from nightmail.model.rows import Account, Change, ChangeKey, Changes, Entry, Kept, Need, RowKey
from nightmail.model.spans import Spans, add_span, pairs
from nightmail.model.words import Lane, Reason, State

from .rules import Steps
from .state import NOTHING, missing_row
from .state import State as Shard

DELIVERED, READ, FAILED, NO_REASON = State.DELIVERED, State.READ, State.FAILED, Reason.NONE
UNDECRYPTABLE, DONE = Reason.UNDECRYPTABLE, Done()


class Verdicts:
    """Collects what one record says about many entries of one device, one receipt per sender.

    A copy of one's own message never changes its ticks. One that could not be opened is told to the
    device that sealed it, which seals it again.
    """

    __slots__ = ("_account", "_delivered", "_device", "_failed")

    def __init__(self, device: int) -> None:
        self._device, self._account = device, device >> DEVICE_BITS
        self._delivered: dict[int, Spans] = {}
        """Sender → the numbers that are safe on the device."""
        self._failed: dict[tuple[int, int, Reason], Spans] = {}
        """(Sender, account it was sent to, why) → numbers."""

    def deliver(self, by: int, low: int, high: int) -> None:
        """Numbers `low` to `high` of one sender (0: of nobody) are safe on the device."""
        if by and by >> DEVICE_BITS != self._account:
            add_span(self._delivered.setdefault(by, []), low, high)

    def fail(self, entry: Entry, reason: Reason) -> None:
        if reason is UNDECRYPTABLE or entry.by >> DEVICE_BITS != self._account:
            add_span(self._failed.setdefault((entry.by, entry.to, reason), []), entry.n, entry.n)

    def tell(self, state: Shard, lane: Lane) -> None:
        to, device, at = self._account, self._device, state.shard.now
        for by, spans in self._delivered.items():
            numbers = ((spans[0], spans[1]),) if len(spans) == 2 else tuple(pairs(spans))
            state.tell(by >> DEVICE_BITS, Receipted(by, to, lane, device, DELIVERED, NO_REASON, at, numbers))
        for (by, to, reason), spans in self._failed.items():
            receipt = Receipted(by, to, lane, device, FAILED, reason, at, tuple(pairs(spans)))
            state.tell(by >> DEVICE_BITS, receipt)


# --- reading ----------------------------------------------------------------------------------


def needs_read(state: Shard, by: int, read: Read) -> list[Need]:
    """The reader's account, and the streams that were read: nobody can have read what was never sent."""
    missing: list[Need] = []
    reader = account_of(by)
    missing_row(state.accounts, Kept.ACCOUNT, reader, missing)
    authors = {span.by for span in read.spans if account_of(span.by) == read.peer}
    missing += [RowKey(Kept.STREAM, author, reader) for author in authors if (author, reader) not in state.streams.rows]
    return missing


def step_read(state: Shard, by: int, via: int, read: Read) -> None:
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


def _looked_at(state: Shard, reader: int, read: Read) -> dict[tuple[int, Lane], Spans]:
    """(Author, lane) → the numbers of theirs that were read, each once, however often they are listed."""
    looked: dict[tuple[int, Lane], Spans] = {}
    for span in read.spans if read.peer != reader else ():
        if account_of(span.by) != read.peer:
            continue
        stream = state.streams.rows[span.by, reader]
        low, high = max(span.low, 1), min(span.high, stream.lanes[span.lane].last if stream else 0)
        if low <= high:
            add_span(looked.setdefault((span.by, span.lane), []), low, high)
    return looked


# --- receiving receipts -----------------------------------------------------------------------


def needs_receipted(state: Shard, _by: int, receipt: Receipted) -> Sequence[Need]:
    number = receipt.by >> DEVICE_BITS
    if account := state.accounts.rows.get(number):
        changes = state.changes.rows
        for device in account.devices:
            if device not in changes:
                break
        else:
            return NOTHING
    missing: list[Need] = []
    if not missing_row(state.accounts, Kept.ACCOUNT, number, missing) and account is not None:
        for device in account.devices:
            missing_row(state.changes, Kept.CHANGES, device, missing)
    return missing


def step_receipted(state: Shard, _by: int, _via: int, receipt: Receipted) -> None:
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


def note(state: Shard, device: int, receipt: Receipted) -> None:
    """Merge a receipt into what one device has yet to hear."""
    changes = state.changes.rows[device]
    if changes is None:
        changes = state.changes.rows[device] = Changes()
    r = receipt
    if r.state == FAILED:
        _note_failures(changes, r, state.shard.limits.failures_alone - len(changes.items))
    else:
        _put(changes, (r.by, r.to, r.lane, r.device, r.state, 0), r, r.numbers)
    state.changes.changed[device] = state.offset
    state.effects.append(Changed(device))


def _note_failures(changes: Changes, r: Receipted, room: int) -> None:
    """The first `room` of them stand alone; the others share an interval with those of the same reason."""
    shared: list[tuple[int, int]] = []
    for low, high in r.numbers:
        first_shared = min(low + max(room, 0), high + 1)
        for n in range(low, first_shared):
            _put(changes, (r.by, r.to, r.lane, r.device, r.state, n), r, ((n, n),))
        room -= first_shared - low
        if first_shared <= high:
            shared.append((first_shared, high))
    if shared:
        _put(changes, (r.by, r.to, r.lane, r.device, r.state, -r.reason), r, tuple(shared))


def _put(changes: Changes, key: ChangeKey, receipt: Receipted, numbers: tuple[tuple[int, int], ...]) -> None:
    changes.head = seq = changes.head + 1
    change = changes.items.pop(key, None) if changes.items else None
    if change is None:
        spans: Spans = []
        change = Change(key, seq, receipt.at, receipt.reason, spans)
    else:
        change.seq, change.at, change.reason, spans = seq, receipt.at, receipt.reason, change.numbers
    for low, high in numbers:
        add_span(spans, low, high)
    changes.items[key] = change


# --- handing receipts out ---------------------------------------------------------------------


def needs_changes(state: Shard, device: int) -> Sequence[Need]:
    if device in state.changes.rows:
        return NOTHING
    missing: list[Need] = []
    missing_row(state.changes, Kept.CHANGES, device, missing)
    return missing


def changes_after(state: Shard, device: int, after: int, limit: int) -> list[Change]:
    """The oldest receipts behind `after`. The numbers grow, but are not without holes."""
    changes = state.changes.rows[device]
    if changes is None or changes.head <= after:
        return []
    return [change for change in changes.items.values() if change.seq > after][:limit]


def needs_changes_acked(state: Shard, by: int, _acked: ChangesAcked) -> Sequence[Need]:
    """The receipts; if there never were any, the mailbox, which tells whether there is such a device."""
    if state.changes.rows.get(by) is not None:
        return NOTHING
    missing: list[Need] = []
    if not missing_row(state.changes, Kept.CHANGES, by, missing):
        missing_row(state.mailboxes, Kept.MAILBOX, by, missing)
    return missing


def step_changes_acked(state: Shard, by: int, via: int, acked: ChangesAcked) -> None:
    """These receipts are safe on the device. One that moved on since has a higher number, and stays."""
    changes, upto = state.changes.rows[by], acked.upto
    if changes is None and state.mailboxes.rows[by] is None:
        state.effects.append(Answer(via, UnknownDevice(by)))
        return
    head = changes.head if changes else 0
    if upto > head:
        state.effects.append(Answer(via, AckAboveHead(head)))
        return
    if via:
        state.effects.append(Answer(via, DONE))
    if changes is None:
        return
    items = changes.items
    heard = list(items if upto == changes.head else takewhile(lambda key: items[key].seq <= upto, items))
    if not heard:
        return  # A repeated or late ack says nothing new.
    for key in heard:
        del items[key]
    state.changes.changed[by] = state.offset


STEPS: Steps = {
    1: {
        ChangesAcked: (needs_changes_acked, step_changes_acked),
        Read: (needs_read, step_read),
        Receipted: (needs_receipted, step_receipted),
    }
}
OPTIMISTIC = {ChangesAcked}
