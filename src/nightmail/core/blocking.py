"""Blocking somebody: nothing of theirs is filed any more, and what waits ends.

Knows:   the block list of one account, and the mailboxes of its devices.
Touches: those, and what a blocked account would hold.
Never:   tells the blocked account anything: its messages stay *sent*.

Entries are looked through by pages, one record each: the first at once, the next when its due item fires. Each page
asks the block list as it is then, so an account that is unblocked meanwhile keeps what is left.
"""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.effects import Answer
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.notes import Withheld
from nightmail.model.records import Blocked, Swept
from nightmail.model.rows import Account, DueFor, DueItem, Entry, Kept, KnownAccounts, Mailbox, Need, queue_id
from nightmail.model.words import Lane

from . import due
from .devices import block
from .expiry import make_gaps
from .mailbox import needs_page, page
from .rules import Steps
from .shares import note_withheld
from .state import ShardState, missing_row

PAGE = 256
"""Entries looked at in one step."""


def needs_blocked(state: ShardState, _by: int, wish: Blocked) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, wish.account, missing)
    missing_row(state.known, Kept.KNOWN, wish.account, missing)
    return missing


def step_blocked(state: ShardState, by: int, via: int, wish: Blocked) -> None:
    said = block(state, by, wish)
    state.effects.append(Answer(via, said))
    if not isinstance(said, Done):
        return
    if wish.on:
        # Also if it is repeated: what waits may have been filed by a fold that did not look for it.
        state.derived.extend(Swept(device, Lane.NORMAL, 0) for device in state.accounts.there(wish.account).devices)
    elif (known := state.known[wish.account]) and known.withheld.pop(wish.peer, None):
        state.known.put(wish.account, known, state.offset)


# --- what waits -------------------------------------------------------------------------------


def needs_swept(state: ShardState, _by: int, swept: Swept) -> list[Need]:
    device, account = swept.device, account_of(swept.device)
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account, missing)
    missing_row(state.known, Kept.KNOWN, account, missing)
    mailbox = needs_page(state, device, swept.lane, swept.seq, PAGE, missing)
    if mailbox is not None and _goes_on(mailbox, swept):
        due.needs_schedule(state, _soon(state), 1, missing)
    return missing


def step_swept(state: ShardState, _by: int, _via: int, swept: Swept) -> None:
    """End the entries of one page whose senders are blocked: a gap for the device, and silence for the sender."""
    device, lane = swept.device, swept.lane
    mailbox, account = state.mailboxes[device], state.accounts[account_of(device)]
    if mailbox is None or account is None or not _holds_blocked(state, account, device, mailbox):
        return
    low, high = page(mailbox, lane, swept.seq, PAGE)
    entries = state.entries.get(queue_id(device, lane), {})
    seqs = [seq for seq in range(low, high + 1) if seq in entries and _is_blocked(account, entries[seq])]
    if seqs:
        _withhold(state, account, device, make_gaps(state, device, mailbox, lane, seqs))
        state.notes.append(Withheld(state.now, device, lane, tuple(seqs)))
        state.ledger.withheld += len(seqs)
    if _goes_on(mailbox, swept):
        due.schedule(state, _soon(state), DueItem(device, lane, high + 1, DueFor.BLOCK))
    elif lane is Lane.NORMAL:
        state.derived.append(Swept(device, Lane.HIGH, 0))


def _is_blocked(account: Account, entry: Entry) -> bool:
    """Blocks do not apply inside a group: there clients hide."""
    return entry.by >> DEVICE_BITS in account.blocked and not entry.epoch


def _holds_blocked(state: ShardState, account: Account, device: int, mailbox: Mailbox) -> bool:
    """Whether something of a blocked account may wait. It is known exactly where shares are counted."""
    if not mailbox.shared:
        return mailbox.waiting > 0
    return not state.shares.there(device).held.keys().isdisjoint(account.blocked)


def _goes_on(mailbox: Mailbox, swept: Swept) -> bool:
    """Whether there is another page in this lane."""
    return page(mailbox, swept.lane, swept.seq, PAGE)[1] < mailbox.lanes[swept.lane].head


def _soon(state: ShardState) -> int:
    return due.moment_of(state, state.now + 1)


def _withhold(state: ShardState, account: Account, device: int, ended: list[Entry]) -> None:
    """Count what ends as if it still waited; on one device only, because each message went to all of them."""
    if device != next(iter(account.listed), 0):
        return
    number = account_of(device)
    known = state.known[number] or KnownAccounts()
    for entry in ended:
        note_withheld(known, entry.by >> DEVICE_BITS, len(entry.ciphertext), state.elapsed)
    state.known.put(number, known, state.offset)


STEPS: Steps = {2: {Blocked: (needs_blocked, step_blocked), Swept: (needs_swept, step_swept)}}
