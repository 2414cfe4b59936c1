"""Whose entries wait for a device: no account fills a mailbox alone.

Knows:   how much of a crowded mailbox each account holds, and whom the mailbox's account knows.
Touches: the row of shares, and the mark on the mailbox that it exists.

A mailbox is crowded once it holds as much as a stranger may: below that nobody can hold too much, so nothing is
counted, and the usual message pays one comparison. When a crowded mailbox is looked at for the first time, what waits
is counted; from then on the row is exact, until the mailbox is down to half of what makes it crowded.

An account's own devices are not bounded by shares: copies of what a person wrote are theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.records import Known, KnownForgotten, Sent
from nightmail.model.refusals import ShareFull
from nightmail.model.rows import Entry, Kept, KnownAccounts, Mailbox, MailboxShares, Need, queue_id
from nightmail.model.words import Lane

from .rights import check_rights
from .rules import Steps
from .state import ShardState, missing_row

NONE_HELD = (0, 0)


# --- may it be filed? -------------------------------------------------------------------------


def is_crowded(state: ShardState, mailbox: Mailbox, size: int) -> bool:
    """Whether, with an entry of `size` bytes more, some account may hold too much."""
    limits = state.shard.limits
    return state.counts_shares and (
        mailbox.waiting >= limits.stranger_entries or mailbox.bytes + size > limits.stranger_bytes
    )


def count(state: ShardState, device: int, mailbox: Mailbox, size: int) -> None:
    """Begin to count whose entries wait for a crowded device, also if the message is then refused.

    Otherwise each refused one would read everything that waits.
    """
    if mailbox.shared or not is_crowded(state, mailbox, size):
        return
    shares = MailboxShares()
    for lane in Lane:
        # By number: in memory they stand in the order in which they were filed or read, which differs between replays.
        for _, entry in sorted(state.entries.get(queue_id(device, lane), {}).items()):
            _add(shares, entry.by >> DEVICE_BITS, len(entry.ciphertext))
    mailbox.shared = True
    state.shares.put(device, shares, state.offset)
    state.mailboxes.put(device, mailbox, state.offset)


def has_room(state: ShardState, device: int, mailbox: Mailbox, by: int, size: int) -> bool:
    """Whether the account of `by` may hold an entry of `size` bytes more. What waits is counted."""
    to, sender = account_of(device), account_of(by)
    if sender == to or not is_crowded(state, mailbox, size):
        return True
    if not _knows(state, to, sender) and is_for_known_accounts(state, mailbox, size):
        return False
    entries, held = state.shares.there(device).held.get(sender, NONE_HELD)
    return entries < most_entries(state, by, to) and held + size <= _most_bytes(state, by, to)


def is_for_known_accounts(state: ShardState, mailbox: Mailbox, size: int) -> bool:
    """Whether so much waits that the rest is for accounts that the owner knows."""
    limits = state.shard.limits
    normal, high = mailbox.lanes
    return (
        normal.waiting + high.waiting >= limits.mailbox_entries // limits.stranger_parts
        or mailbox.bytes + size > limits.mailbox_bytes // limits.stranger_parts
    )


def is_stranger(state: ShardState, to: int, by: int) -> bool:
    """Whether the account `to` does not know the one of `by`."""
    return account_of(by) != to and not _knows(state, to, account_of(by))


def most_entries(state: ShardState, by: int, to: int) -> int:
    """Entries of one mailbox of `to` that the account of `by` may hold."""
    limits = state.shard.limits
    if not _knows(state, to, account_of(by)):
        return limits.stranger_entries
    return max(limits.stranger_entries, limits.mailbox_entries // limits.share_parts)


def _most_bytes(state: ShardState, by: int, to: int) -> int:
    limits = state.shard.limits
    if not _knows(state, to, account_of(by)):
        return limits.stranger_bytes
    return max(limits.stranger_bytes, limits.mailbox_bytes // limits.share_parts)


def _knows(state: ShardState, account: int, peer: int) -> bool:
    known = state.known.rows[account]
    return known is not None and peer in known.accounts


def withhold(state: ShardState, by: int, sent: Sent) -> ShareFull | None:
    """Count a message of a blocked account as if it waited: that account must not tell from what is refused.

    What it would hold ends when entries do, so that it does not wait for ever.
    """
    size = max((len(envelope.ciphertext) for envelope in sent.envelopes), default=0)
    most, most_bytes = most_entries(state, by, sent.to), _most_bytes(state, by, sent.to)
    known, sender = state.known.rows[sent.to] or KnownAccounts(), account_of(by)
    now, ttl_ms = state.elapsed, state.shard.limits.ttl_ms
    entries, held, since = known.withheld.get(sender, (0, 0, now))
    if ttl_ms and since + ttl_ms <= now:
        entries, held, since = 0, 0, now
    if entries >= most or held + size > most_bytes:
        return ShareFull(most)
    known.withheld[sender] = (entries, held, since)
    note_withheld(known, sender, size, now)
    state.known.put(sent.to, known, state.offset)
    return None


def note_withheld(known: KnownAccounts, account: int, size: int, now: int) -> None:
    """A blocked account would hold one entry more. `now` is elapsed time (`ShardState.elapsed`)."""
    entries, held, since = known.withheld.get(account, (0, 0, now))
    known.withheld[account] = (entries + 1, held + size, since)


# --- what is filed, and what ends -------------------------------------------------------------


def add(state: ShardState, device: int, by: int, size: int) -> None:
    _add(state.shares.there(device), by >> DEVICE_BITS, size)
    state.shares.changed[device] = state.offset


def _add(shares: MailboxShares, account: int, size: int) -> None:
    entries, held = shares.held.get(account, NONE_HELD)
    shares.held[account] = (entries + 1, held + size)


def let_go(state: ShardState, device: int, ended: Iterable[Entry]) -> None:
    """These entries wait no longer."""
    held = state.shares.there(device).held
    for entry in ended:
        account = entry.by >> DEVICE_BITS
        entries, size = held[account]
        if entries == 1:
            del held[account]
        else:
            held[account] = (entries - 1, size - len(entry.ciphertext))
    state.shares.changed[device] = state.offset


def forget_if_sparse(state: ShardState, device: int, mailbox: Mailbox) -> None:
    """Stop counting once little is left. At half, so that a mailbox at the border is not counted again and again."""
    limits = state.shard.limits
    if 2 * mailbox.waiting < limits.stranger_entries and 2 * mailbox.bytes < limits.stranger_bytes:
        mailbox.shared = False
        state.shares.put(device, None, state.offset)


# --- whom an account knows --------------------------------------------------------------------


def needs_known(state: ShardState, _by: int, known: Known | KnownForgotten) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, known.account, missing)
    missing_row(state.known, Kept.KNOWN, known.account, missing)
    return missing


def step_known(state: ShardState, by: int, via: int, wish: Known) -> None:
    """Remember it once. A repeat changes nothing, so a client may say it as often as it likes."""
    number = wish.account
    said: Said | None = check_rights(by, state.accounts[number], number)
    if said is None:
        known = state.known[number] or KnownAccounts()
        if wish.on != (wish.peer in known.accounts):
            _note(known, wish, state.now, state.shard.limits.known_accounts)
            state.known.put(number, known, state.offset)
        said = Done()
    state.effects.append(Answer(via, said))


def _note(known: KnownAccounts, wish: Known, now: int, most: int) -> None:
    if not wish.on:
        del known.accounts[wish.peer]
        return
    known.accounts[wish.peer] = now
    while len(known.accounts) > most:
        del known.accounts[next(iter(known.accounts))]


def step_known_forgotten(state: ShardState, _by: int, _via: int, forgotten: KnownForgotten) -> None:
    state.known.put(forgotten.account, None, state.offset)


STEPS: Steps = {2: {Known: (needs_known, step_known), KnownForgotten: (needs_known, step_known_forgotten)}}
