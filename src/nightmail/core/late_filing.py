"""Filing a message whose number and stamp are given already: it was scheduled and has fired, or it is replayed.

Knows:   the recipient's account and mailboxes.
Touches: those mailboxes; through `tell`, the sender's receipts and own copies.

`send.py` does the same for a message that has just come, in one piece, because that is done most often.
"""

from __future__ import annotations

from nightmail.model.ids import account_of
from nightmail.model.notes import Placed
from nightmail.model.records import Copied, Envelope, Receipted, Sent
from nightmail.model.rows import Account, Entry
from nightmail.model.words import MessageState, Reason

from . import mailbox, shares
from .mailbox import file
from .state import ShardState


def file_late(
    state: ShardState, by: int, sent: Sent, at: int, account: Account | None, *, is_checked: bool = False
) -> None:
    """File for each device that it is sealed for, is listed and has room. Its sender is told where it failed.

    What `send.needs_sent` names is in memory. A blocked sender is told nothing. `is_checked`: `send.check` has just
    found nothing wrong with it; so if it is for one device only, that one has room.
    """
    is_checked = is_checked and len(sent.envelopes) == 1
    blocked = account is not None and account_of(by) in account.blocked
    if blocked:
        state.ledger.withheld += len(sent.envelopes)
    places: list[tuple[int, int]] = []
    for envelope in sent.envelopes:
        seq = 0
        if not blocked:
            reason = None if is_checked else _cannot(state, by, account, envelope)
            if reason is None:
                s = sent
                entry = Entry(by, s.to, s.n, s.id, s.tag, s.kind, s.of, at, s.life_ms, envelope.ciphertext)
                box = state.mailboxes.there(envelope.device)
                seq = file(state, envelope.device, box, s.lane, entry)
            else:
                _tell_failed(state, by, sent, envelope.device, reason)
        places.append((envelope.device, seq))
    s = sent
    state.notes.append(Placed(at, by, s.to, s.lane, s.n, s.id, s.of, False, blocked, tuple(places)))
    state.noted.add(by)
    if sent.own_envelopes:
        copied = Copied(by, s.to, s.lane, s.n, s.id, s.tag, s.kind, s.of, s.life_ms, at, s.own_envelopes)
        state.ledger.carried += 1
        state.tell(account_of(by), copied)


def _cannot(state: ShardState, by: int, account: Account | None, envelope: Envelope) -> Reason | None:
    """Why a device cannot have it."""
    device, size = envelope.device, len(envelope.ciphertext)
    if account is None or account.listed.get(device) != envelope.registration:
        return Reason.DEVICE_REMOVED
    box = state.mailboxes.there(device)
    if mailbox.is_full(state, box):
        return Reason.MAILBOX_FULL
    shares.count(state, device, box, size)
    return None if shares.has_room(state, device, box, by, size) else Reason.MAILBOX_FULL


def _tell_failed(state: ShardState, by: int, sent: Sent, device: int, reason: Reason) -> None:
    n = sent.n
    failed = Receipted(by, sent.to, sent.lane, device, MessageState.FAILED, reason, state.now, ((n, n),))
    state.tell(account_of(by), failed)
    state.ledger.fail(reason)
