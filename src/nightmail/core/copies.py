"""The sender's own copies of a message, filed on the sender's shard.

Knows:   the sender's account, and the mailboxes of its other devices.
Touches: those mailboxes, and the receipts of the device that sent the message.
"""

from __future__ import annotations

from nightmail.model.ids import account_of
from nightmail.model.notes import Placed
from nightmail.model.records import Copied, Envelope, Receipted
from nightmail.model.rows import Account, Entry, Kept, Need
from nightmail.model.words import MessageState, Reason

from . import mailbox
from .mailbox import file
from .receipts import note
from .rules import Steps
from .state import ShardState, missing_row

FAILED = MessageState.FAILED


def needs_copied(state: ShardState, _by: int, copied: Copied) -> list[Need]:
    own = account_of(copied.by)
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, own, missing)
    missing_row(state.receipts, Kept.RECEIPTS, copied.by, missing)
    for envelope in copied.envelopes:
        if account_of(envelope.device) == own:
            mailbox.needs_filing(state, envelope.device, copied.life_ms, len(copied.envelopes), missing)
    return missing


def step_copied(state: ShardState, _by: int, _via: int, copied: Copied) -> None:
    """File the copies, and tell the sending device of each own device that has none."""
    state.ledger.carried -= 1
    account = state.accounts.rows[account_of(copied.by)]
    if account is None:
        return
    sealed: dict[int, Envelope] = {envelope.device: envelope for envelope in copied.envelopes}
    places: list[tuple[int, int]] = []
    for device, registration in account.listed.items():
        if device == copied.by:
            continue
        envelope = sealed.get(device)
        if envelope is None or envelope.registration != registration:
            # A re-seal names the one device it is for: the others are not missing it.
            if copied.of is None:
                state.ledger.owed += 1
                _note_uncopied(state, copied, account, device, Reason.STALE_DEVICES)
            continue
        state.ledger.owed += 1
        box = state.mailboxes.there(device)
        if mailbox.is_full(state, box):
            places.append((device, 0))
            _note_uncopied(state, copied, account, device, Reason.MAILBOX_FULL)
            continue
        c = copied
        entry = Entry(c.by, c.to, c.n, c.id, c.tag, c.kind, c.of, c.at, c.life_ms, envelope.ciphertext)
        places.append((device, file(state, device, box, copied.lane, entry)))
    c = copied
    state.notes.append(Placed(c.at, c.by, c.to, c.lane, c.n, c.id, c.of, True, False, tuple(places)))
    state.noted.add(c.by)


def _note_uncopied(state: ShardState, copied: Copied, account: Account, device: int, reason: Reason) -> None:
    state.ledger.fail(reason)
    if copied.by in account.devices:
        n = copied.n
        lost = Receipted(copied.by, copied.to, copied.lane, device, FAILED, reason, state.now, ((n, n),))
        note(state, copied.by, lost)


STEPS: Steps = {1: {Copied: (needs_copied, step_copied)}}
