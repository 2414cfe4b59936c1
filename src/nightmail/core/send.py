"""Taking in a message: accept it once, file it once, answer every retry alike.

Knows:   the sender's stream, the recipient's account and mailboxes.
Touches: only rows of the recipient's shard; the sender's own copies reach the sender's shard by `tell`.

The recipient's shard decides, so a refusal is final and costs one hop.
"""

from __future__ import annotations

from zlib import crc32

from nightmail.model.answers import Accepted, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.notes import Placed
from nightmail.model.records import Copied, Receipted, Sent, Voided
from nightmail.model.refusals import (
    AnyRefusal,
    IdReused,
    MailboxFull,
    ShareFull,
    StaleDevices,
    UnknownRecipient,
)
from nightmail.model.rows import Account, Entry, Kept, Mailbox, Need, Stream
from nightmail.model.words import MessageState, Reason

from . import mailbox, ring, shares
from .mailbox import file
from .numbering import answer_out_of_turn, needs_stream, take_number
from .ring import is_reused
from .rules import Steps
from .state import ShardState, missing_row

FAILED = MessageState.FAILED
NOBODY: tuple[tuple[int, Mailbox, int], ...] = ()


# --- a message --------------------------------------------------------------------------------


def needs_sent(state: ShardState, by: int, sent: Sent) -> list[Need]:
    missing: list[Need] = []
    needs_stream(state, by, sent.to, missing)
    if state.counts_shares and (account := state.accounts.rows.get(sent.to)) and account_of(by) in account.blocked:
        missing_row(state.known, Kept.KNOWN, sent.to, missing)
    for envelope in sent.envelopes:
        if account_of(envelope.device) == sent.to:
            mailbox.needs_filing(state, envelope.device, sent.life_ms, len(sent.envelopes), missing)
            mailbox.needs_shares(state, envelope.device, len(envelope.ciphertext), missing)
    return missing


def step_sent(state: ShardState, by: int, via: int, sent: Sent) -> None:
    """Take the number and answer; file one entry per device with room; a device without any fails alone.

    In one piece, because calls are what a message costs most.
    """
    to, lane, n = sent.to, sent.lane, sent.n
    key, id_, tag = (by, to), sent.id, sent.tag
    stream = state.streams.rows[key] or Stream()
    numbers = stream.lanes[lane]
    account = state.accounts.rows[to]
    if n != numbers.last + 1:
        said = answer_out_of_turn(numbers, sent)
        state.ledger.repeated += type(said) is Accepted
        state.effects.append(Answer(via, said))
        return
    checksum, (normal, high) = crc32(id_.encode()).to_bytes(4), stream.lanes
    if (
        # Looked for here first: hardly any id is there.
        (normal.ring.find(checksum) >= 0 or high.ring.find(checksum) >= 0)
        and state.checks_ids
        and is_reused(stream.lanes, id_, tag)
    ):
        state.effects.append(Answer(via, IdReused(id_)))
        return
    blocked = account is not None and by >> DEVICE_BITS in account.blocked
    refusal = check_blocked(state, account, by, sent) if blocked else check(state, account, by, sent)
    if refusal is not None:
        state.effects.append(Answer(via, refusal))
        return

    at = take_number(state, key, stream, sent, sent.list_version, checksum)
    envelopes = sent.envelopes
    count = len(envelopes)
    state.ledger.owed += count
    places: tuple[tuple[int, int], ...] = ()
    if blocked:
        state.ledger.withheld += count
        places, envelopes = tuple((envelope.device, 0) for envelope in envelopes), ()
    for envelope in envelopes:
        device = envelope.device
        box = state.mailboxes.rows[device]
        assert box is not None
        # If it is sealed for one device only, that one has room: it was just checked.
        if count > 1 and (
            mailbox.is_full(state, box) or not shares.has_room(state, device, box, by, len(envelope.ciphertext))
        ):
            seq = 0
            full = Receipted(by, to, lane, device, FAILED, Reason.MAILBOX_FULL, state.now, ((n, n),))
            state.tell(account_of(by), full)
            state.ledger.fail(Reason.MAILBOX_FULL)
        else:
            entry = Entry(by, to, n, id_, tag, sent.kind, sent.of, at, sent.life_ms, envelope.ciphertext)
            seq = file(state, device, box, lane, entry)
        places += ((device, seq),)
    state.notes.append(Placed(at, by, to, lane, n, id_, sent.of, False, blocked, places))
    if sent.own_envelopes:
        copied = Copied(by, to, lane, n, id_, tag, sent.kind, sent.of, sent.life_ms, at, sent.own_envelopes)
        state.ledger.carried += 1
        state.tell(account_of(by), copied)
    state.effects.append(Answer(via, Accepted(id_, tag, at, sent.list_version)))


def check_blocked(state: ShardState, account: Account | None, by: int, sent: Sent) -> AnyRefusal | None:
    """As `check`; and what a blocked sender sends is counted as if it waited."""
    if not state.counts_shares:
        return check(state, account, by, sent)
    if sent.to not in state.known.rows:
        raise KeyError(sent.to)
    return check(state, account, by, sent) or shares.withhold(state, by, sent)


def check(state: ShardState, account: Account | None, by: int, sent: Sent) -> AnyRefusal | None:
    """Sealed for exactly the listed devices (a re-seal: for some of them), one of which has room."""
    if account is None or account.closed:
        return UnknownRecipient(sent.to)
    listed, envelopes = account.listed, sent.envelopes
    count = len(envelopes)
    if count != len(listed) and sent.of is None and count != len(listed) - (by in listed):
        return _stale(account, by, sent)
    if sent.list_version != account.list_version:
        return _stale(account, by, sent)
    shard, has_room, crowded = state.shard, False, NOBODY
    limits = shard.limits
    for envelope in envelopes:
        device = envelope.device
        if listed.get(device) != envelope.registration or device == by:
            return _stale(account, by, sent)
        box = state.mailboxes.rows[device]
        assert box is not None
        normal, high = box.lanes
        waiting = normal.waiting + high.waiting
        if waiting < limits.mailbox_entries and box.bytes < limits.mailbox_bytes:
            size = len(envelope.ciphertext)
            # Below what a stranger may hold, nobody can hold too much.
            if waiting < limits.stranger_entries and box.bytes + size <= limits.stranger_bytes and not box.shared:
                has_room = True
            else:
                mailbox.look_at_shares(state, device, size)
                crowded += ((device, box, size),)
        if sent.life_ms or not box.due or box.push or shard.newest_time:
            mailbox.look_at_clock(state, box, sent.life_ms, count)
    if count > 1 and len({envelope.device for envelope in envelopes}) < count:
        return _stale(account, by, sent)  # One device named twice must not stand in for another.
    for device, box, size in crowded:
        shares.count(state, device, box, size)
        has_room = shares.has_room(state, device, box, by, size) or has_room
    if has_room or (not envelopes and (sent.to == account_of(by) or (sent.of is not None and sent.own_envelopes))):
        return None  # Without envelopes: a note to oneself, or a re-seal that is only for a device of one's own.
    # An account without any device to deliver to is full in the same sense: later may do.
    return ShareFull(shares.most_entries(state, by, sent.to)) if crowded else MailboxFull(limits.mailbox_entries)


def _stale(account: Account, by: int, sent: Sent) -> StaleDevices:
    listed = account.listed
    given = {envelope.device: envelope.registration for envelope in sent.envelopes}
    missing = () if sent.of is not None else tuple(sorted(d for d in listed if d not in given and d != by))
    extra = tuple(sorted(d for d in given if d not in listed or d == by))
    rekeyed = tuple(sorted(d for d, r in given.items() if d != by and d in listed and listed[d] != r))
    return StaleDevices(account.list_version, missing, extra, rekeyed)


# --- a number that was given up ---------------------------------------------------------------


def needs_voided(state: ShardState, by: int, voided: Voided) -> list[Need]:
    missing: list[Need] = []
    needs_stream(state, by, voided.to, missing)
    return missing


def step_voided(state: ShardState, by: int, via: int, voided: Voided) -> None:
    """Consume a number, unless its message was accepted after all: then say so."""
    stream = state.streams.rows[by, voided.to] or Stream()
    numbers = stream.lanes[voided.lane]
    account = state.accounts.rows[voided.to]
    said: Said
    if voided.n != numbers.last + 1:
        said = answer_out_of_turn(numbers, voided)
    elif account is None:
        said = UnknownRecipient(voided.to)
    else:
        said = Accepted(voided.id, ring.VOID, state.now, 0)
        ring.keep(numbers, said)
        ring.forget(numbers, voided.floor, state.shard.limits.ring_acks)
        state.streams.put((by, voided.to), stream, state.offset)
    state.effects.append(Answer(via, said))


STEPS: Steps = {1: {Sent: (needs_sent, step_sent), Voided: (needs_voided, step_voided)}}
OPTIMISTIC = {Sent}
