"""The state, watched: a step that touches a row out of turn is stopped on the spot.

Knows:   which rows the current record's `needs` named, which its step wrote, what a sound row looks like.
Touches: nothing of the fold's outcome: a watched state is, row for row, the state it watches.
Never:   objects to loading, saving or looking: outside of a record everything may be touched.

The fold promises to depend on nothing but the rows it asked for, and to say of each that it
changed. On one machine with everything in memory a broken promise shows nowhere; here it does.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from nightmail.core.due import hour_of, moment_of_slot
from nightmail.core.gaps import gap_at
from nightmail.core.ring import SLOT_BYTES
from nightmail.core.rules import Fold, Needs, Step
from nightmail.core.state import ShardState, encode_row
from nightmail.core.step import FOLDS, OPTIMISTIC
from nightmail.model.answers import Accepted
from nightmail.model.effects import Answer, Call, Effect, LookForBytes, RemoveBytes
from nightmail.model.forms import kem_id, key_id
from nightmail.model.ids import SERVER, account_of, shard_of
from nightmail.model.records import AnyBody, Author, Copied, Sent
from nightmail.model.refusals import MailboxFull
from nightmail.model.rows import Due, DueHour, Kept, Keys, Mailbox, Need, PendingReceipts, Queue, Stream, queue_id
from nightmail.model.words import Lane, MessageState

from .watched_state import Crooked, Foreign, Late, Misstep, Phase, StrictState, Unnamed, Unsaid

__all__ = (
    "Crooked", "Foreign", "Late", "Misstep", "StrictState", "Unnamed", "Unsaid", "strict", "strictly",
)  # fmt: skip


# --- around a record --------------------------------------------------------------------------


def strict(folds: Mapping[int, Fold]) -> dict[int, Fold]:
    """The same folds, watched wherever they are given a `StrictState`. What is watched already stays as it is."""
    return {
        version: {body: (_strict_needs(needs), _strict_step(needs, step)) for body, (needs, step) in fold.items()}
        for version, fold in folds.items()
    }


@contextmanager
def strictly() -> Generator[None]:
    """Every fold of this program is watched, until the end of the block."""
    plain = dict(FOLDS)
    FOLDS.update(strict(plain))
    try:
        yield
    finally:
        FOLDS.clear()
        FOLDS.update(plain)


def _strict_needs(needs: Needs) -> Needs:
    if hasattr(needs, "__wrapped__"):
        return needs

    @wraps(needs)
    def asked(state: ShardState, by: int, body: Any) -> Sequence[Need]:
        if not isinstance(state, StrictState):
            return needs(state, by, body)
        watch = state.watch
        watch.named.clear()
        watch.phase = Phase.NEEDS
        try:
            missing = needs(state, by, body)
        finally:
            watch.phase = Phase.OUTSIDE
        watch.asked = None if missing else body
        return missing

    return asked


def _strict_step(needs: Needs, step: Step) -> Step:
    if hasattr(step, "__wrapped__"):
        return step
    asked = _strict_needs(needs)

    @wraps(step)
    def taken(state: ShardState, by: int, via: int, body: Any) -> None:
        if not isinstance(state, StrictState):
            step(state, by, via, body)
            return
        watch = state.watch
        tried = watch.asked is not body
        if tried:
            if type(body) not in OPTIMISTIC:
                raise Unnamed(f"{type(body).__name__} was taken before its needs were met")
            asked(state, by, body)
        watch.asked = None
        watch.written.clear()
        watch.steps += 1
        thorough = watch.steps % state.every == 0
        before = {key: _bytes(state, *key) for key in watch.named} if thorough else {}
        full = _full(state, body)
        counted = len(state.effects), len(state.forwards), len(state.derived)
        watch.phase = Phase.TRY if tried else Phase.STEP
        try:
            step(state, by, via, body)
        except KeyError:
            if watch.written or any(_bytes(state, *key) != row for key, row in before.items()):
                raise Late(f"{type(body).__name__} changed a row before it had looked at all of them") from None
            raise
        finally:
            watch.phase = Phase.OUTSIDE
        if not thorough:
            return
        for key in watch.named - watch.written:
            if _bytes(state, *key) != before[key]:
                raise Unsaid(f"{key} changed in {type(body).__name__}")
        check_rows(state, watch.written)
        check_consequences(state, *counted)
        check_refusal(state, body, state.effects[counted[0] :])
        if isinstance(body, Sent) and any(
            isinstance(e, Answer) and isinstance(e.said, Accepted) for e in state.effects[counted[0] :]
        ):
            _check_sender(state, by, body)
        _expect(full.items() <= _full(state, body).items(), "nothing is filed where there is no room", body)

    return taken


def _bytes(state: StrictState, kind: Kept, key: Any) -> bytes:
    return encode_row(state.watched[kind].unwatched(key))


# --- what a sound row looks like --------------------------------------------------------------


def check_rows(state: StrictState, written: set[tuple[Kept, Any]]) -> None:
    for kind, key in written:
        match state.watched[kind].unwatched(key):
            case Mailbox() as mailbox:
                for lane, queue in enumerate(mailbox.lanes):
                    _check_queue(state, queue_id(key, lane), queue)
                _check_bytes(state, key, mailbox)
                _check_shares(state, key, mailbox)
            case PendingReceipts() as receipts:
                _check_receipts(receipts)
            case Keys() as keys:
                _check_keys(keys)
            case Stream() as stream:
                _check_stream(stream)
            case DueHour() as hour:
                slots, shard = hour.slots, state.shard
                in_order = sorted(set(slots), key=lambda slot: (moment_of_slot(shard, slot), slot))
                _expect(bool(slots) and slots == in_order, "an hour's slots", hour)
                _expect(shard.due.get(key) == moment_of_slot(shard, slots[0]), "an hour's first moment", hour)
            case Due() as slot:
                _expect(bool(slot.items) and _is_listed(state, key), "a slot that is listed", slot)
            case _:
                pass
    _expect(state.shard.next_due == min(state.shard.due.values(), default=0), "next_due", state.shard)


def _is_listed(state: StrictState, slot: int) -> bool:
    """Whether its hour lists it; of an hour that is not in memory, as a slot with room needs none, its first moment."""
    moment = moment_of_slot(state.shard, slot)
    number = hour_of(state.shard, moment)
    hour = state.watched[Kept.DUE_HOUR].unwatched(number)
    if hour is None:
        is_away = not state.watched[Kept.DUE_HOUR].unwatched_has(number)
        return is_away and state.shard.due.get(number, moment + 1) <= moment
    return slot in hour.slots


def _check_queue(state: ShardState, number: int, queue: Queue) -> None:
    entries = state.entries.get(number, {})
    _expect(0 <= queue.acked <= queue.head, "acked and head", queue)
    reach = queue.acked
    last_reason = None
    for gap in queue.gaps:
        _expect(reach < gap.low <= gap.high <= queue.head, "gaps in order and within (acked, head]", queue)
        _expect(gap.low > reach + 1 or gap.reason != last_reason, "gaps merged", queue)
        reach, last_reason = gap.high, gap.reason
    lost = sum(gap.high - gap.low + 1 for gap in queue.gaps)
    _expect(queue.waiting == queue.head - queue.acked - lost, "waiting", queue)
    _expect(len(entries) <= queue.waiting, "entries in memory", (queue, sorted(entries)))
    for seq in entries:
        inside = queue.acked < seq <= queue.head and gap_at(queue.gaps, seq) is None
        _expect(inside, "an entry's number", (seq, queue))


def _check_bytes(state: ShardState, device: int, mailbox: Mailbox) -> None:
    entries = [entry for lane in Lane for entry in state.entries.get(queue_id(device, lane), {}).values()]
    size = sum(len(entry.ciphertext) for entry in entries)
    all_here = len(entries) == mailbox.waiting
    _expect(mailbox.bytes == size if all_here else mailbox.bytes >= size, "bytes that wait", (mailbox, size))
    if all_here:  # Those that were filed before fold 2 are not counted.
        _expect(mailbox.waking <= sum(entry.wakes for entry in entries), "entries that may wake", mailbox)


def _check_shares(state: StrictState, device: int, mailbox: Mailbox) -> None:
    """Whose entries wait is counted exactly, and only while the mailbox says so."""
    if device not in state.shares.rows:
        return
    shares = state.watched[Kept.SHARES].unwatched(device)
    _expect((shares is not None) == mailbox.shared, "shares that are counted", (mailbox, shares))
    entries = [entry for lane in Lane for entry in state.entries.get(queue_id(device, lane), {}).values()]
    if shares is None or len(entries) != mailbox.waiting:
        return
    held: dict[int, tuple[int, int]] = {}
    for entry in entries:
        number, size = held.get(account_of(entry.by), (0, 0))
        held[account_of(entry.by)] = (number + 1, size + len(entry.ciphertext))
    _expect(shares.held == held, "what each account holds", (shares, held))


def _check_sender(state: StrictState, by: int, sent: Sent) -> None:
    """Who sends holds no more than its share, wherever that is counted."""
    limits, sender = state.shard.limits, account_of(by)
    known = state.watched[Kept.KNOWN].unwatched(sent.to)
    most = limits.stranger_entries
    if known is not None and sender in known.accounts:
        most = max(most, limits.mailbox_entries // limits.share_parts)
    for envelope in sent.envelopes if sender != sent.to else ():
        shares = state.watched[Kept.SHARES].unwatched(envelope.device)
        if shares is not None and (Kept.SHARES, envelope.device) in state.watch.written:
            entries, _ = shares.held.get(sender, (0, 0))
            _expect(entries <= most, "a share of a mailbox", (sender, entries, most))


def _check_receipts(receipts: PendingReceipts) -> None:
    seqs = [receipt.seq for receipt in receipts.items.values()]
    _expect(seqs == sorted(set(seqs)) and all(0 < seq <= receipts.head for seq in seqs), "receipts in order", receipts)
    for key, receipt in receipts.items.items():
        spans = receipt.numbers
        n, failed = key[5], receipt.state is MessageState.FAILED
        single = n > 0 and spans == [n, n]
        _expect((single or n == -receipt.reason) if failed else n == 0, "a receipt's key", receipt)
        _expect(key == receipt.key and len(spans) > 0 and len(spans) % 2 == 0, "a receipt", receipt)
        rising = all(low <= high for low, high in zip(spans[::2], spans[1::2], strict=True))
        apart = all(low > high + 1 for high, low in zip(spans[1::2], spans[2::2], strict=False))
        _expect(rising and apart, "a receipt's numbers", receipt)


def _check_keys(keys: Keys) -> None:
    for stock, id_of, highest, taken in (
        (keys.one_time, key_id, keys.highest, [claim.one_time for claim in keys.claims.values()]),
        (keys.one_time_kem, kem_id, keys.highest_kem, [claim.kem for claim in keys.claims.values()]),
    ):
        ids, gone = [id_of(key) for key in stock], [id_of(key) for key in taken if key is not None]
        _expect(ids == sorted(set(ids)) and all(n <= highest for n in ids), "keys in order", ids)
        _expect(len(set(gone)) == len(gone) and not set(gone) & set(ids), "a key that is handed out once", (ids, gone))
    ages = [claim.at for claim in keys.claims.values()]
    _expect(ages == sorted(ages), "claims in order", ages)


def _check_stream(stream: Stream) -> None:
    for numbers in stream.lanes:
        whole = (numbers.last + 1 - numbers.low) * SLOT_BYTES
        _expect(len(numbers.ring) == whole, "a ring from low to last, without holes", stream)


def check_consequences(state: StrictState, effects: int, forwards: int, derived: int) -> None:
    """What the step asked for is asked of the right shard."""
    for effect in state.effects[effects:]:
        if isinstance(effect, Call):
            _expect(state.owns(effect.account), "a call's shard", effect)
        elif isinstance(effect, RemoveBytes | LookForBytes):
            _expect(state.owns(effect.owner), "a blob's shard", effect)
        elif not isinstance(effect, Answer):
            _expect(state.owns_device(effect.device), "an effect's shard", effect)
    for forward in state.forwards[forwards:]:
        there = shard_of(forward.body.home(SERVER), state.shards)
        _expect(forward.shard == there != state.index, "a forward's shard", forward)
    told = [forward for forward in state.forwards[forwards:] if forward.k > state.shard.told[forward.shard]]
    _expect(not told, "a forward's number", told)
    for body in list(state.derived)[derived:]:
        if not body.said_by & Author.FOLD:
            raise Crooked(f"{type(body).__name__} may not follow from another record")
        home = body.home(SERVER)
        _expect(home == SERVER or shard_of(home, state.shards) == state.index, "a consequence's shard", body)


def check_refusal(state: StrictState, body: AnyBody, effects: Sequence[Effect]) -> None:
    """Only if no device has room is a message refused for want of it."""
    if isinstance(body, Sent) and any(isinstance(e, Answer) and isinstance(e.said, MailboxFull) for e in effects):
        boxes = [state.watched[Kept.MAILBOX].unwatched(envelope.device) for envelope in body.envelopes]
        _expect(all(box is None or _is_full(state, box) for box in boxes), "a refusal for want of room", body)


def _full(state: StrictState, body: AnyBody) -> dict[int, tuple[int, ...]]:
    """Of the devices that a message is for, those without room, and how far their lanes have come."""
    boxes = {
        envelope.device: state.watched[Kept.MAILBOX].unwatched(envelope.device)
        for envelope in (body.envelopes if isinstance(body, Sent | Copied) else ())
    }
    return {
        device: tuple(queue.head for queue in box.lanes)
        for device, box in boxes.items()
        if box and _is_full(state, box)
    }


def _is_full(state: StrictState, box: Mailbox) -> bool:
    limits = state.shard.limits
    return box.waiting >= limits.mailbox_entries or box.bytes >= limits.mailbox_bytes


def _expect(so: bool, what: str, seen: object) -> None:
    if not so:
        raise Crooked(f"{what}: {seen}")
