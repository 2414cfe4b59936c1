"""What a group sends to its members, filed on their shard.

Knows:   the members' accounts, and the mailboxes of their devices.
Touches: those mailboxes; through `tell`, the receipts of the author.

The group knows a member's devices as of some revision, and the member's shard may be ahead of it or behind. So a
device gets what was sent to its account only if the account had listed it at that revision, and lists it still.
"""

from __future__ import annotations

from nightmail.core import mailbox, shares
from nightmail.core.mailbox import file
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.notes import Placed
from nightmail.model.records import Enveloped, Fanned, Receipted
from nightmail.model.rows import Account, GroupEntry, Kept, Mailbox, Need
from nightmail.model.words import MessageState, Reason

# --- for everybody ----------------------------------------------------------------------------


def needs_fanned(state: ShardState, _by: int, fanned: Fanned) -> list[Need]:
    missing: list[Need] = []
    devices: list[int] = []
    for number, revision in fanned.audience:
        if not missing_row(state.accounts, Kept.ACCOUNT, number, missing):
            devices += _addressed(state.accounts[number], revision, fanned.by)
    for device in devices:
        mailbox.needs_filing(state, device, fanned.life_ms, len(devices), missing)
        _needs_known(state, device, len(fanned.ciphertext), missing)
    return missing


def step_fanned(state: ShardState, _by: int, _via: int, fanned: Fanned) -> None:
    """File one entry for everybody. Most devices have room, and every row is looked at before the first changes."""
    f = fanned
    boxes, unreached = _boxes(state, f)
    entry = GroupEntry(
        f.by, f.group, f.n, f.id, f.tag, f.kind, None, f.at, f.life_ms, f.ciphertext, f.group_seq, f.epoch, f.lane
    )
    lane = f.lane
    places: list[tuple[int, int]] = []
    ledger = state.ledger
    ledger.carried -= len(f.audience)
    ledger.owed += len(boxes)
    for device, box, has_room in boxes:
        seq = file(state, device, box, lane, entry) if has_room else _file(state, device, entry, f)
        places.append((device, seq))
        if not seq:
            unreached = True
    if unreached:
        _tell_failed(state, f, dict(places))
    if f.by:
        state.notes.append(Placed(f.at, f.by, f.group, lane, f.n, f.id, None, False, False, tuple(places)))
        state.noted.add(f.by)


def _boxes(state: ShardState, fanned: Fanned) -> tuple[list[tuple[int, Mailbox, bool]], bool]:
    """The mailboxes that a message goes to, and whether there is room for it by any author; and whether there is
    another account than the author's without any.

    Raises KeyError unless every row that filing will touch is in memory.
    """
    by, author, life_ms, limits = fanned.by, fanned.by >> DEVICE_BITS, fanned.life_ms, state.shard.limits
    accounts, mailboxes = state.accounts.rows, state.mailboxes.rows
    most_entries = limits.mailbox_entries // limits.stranger_parts
    most_bytes = limits.mailbox_bytes // limits.stranger_parts - len(fanned.ciphertext)
    boxes: list[tuple[int, Mailbox, bool]] = []
    unclocked: list[Mailbox] = []
    unreached = False
    for number, revision in fanned.audience:
        account, before = accounts[number], len(boxes)
        since = account.listed_since if account else {}
        for device in account.listed if account else ():
            if device != by and (not since or since.get(device, 0) <= revision):
                box = mailboxes[device]
                assert box is not None, device
                normal, high = box.lanes
                has_room = normal.waiting + high.waiting < most_entries and box.bytes <= most_bytes
                boxes.append((device, box, has_room))
                if not has_room:
                    state.known.rows[number]  # Looked at by `_file`.
                if not box.due or (box.push and not box.wake_due):
                    unclocked.append(box)
                if box.shared:
                    state.shares.there(device)
        if len(boxes) == before and number != author:
            unreached = True
    for box in [box for _, box, _ in boxes] if life_ms or state.shard.newest_time else unclocked:
        mailbox.look_at_clock(state, box, life_ms, len(boxes))
    return boxes, unreached


def _addressed(account: Account | None, revision: int, by: int) -> list[int]:
    """The devices of one member that a message is for."""
    if account is None:
        return []
    since = account.listed_since
    return [device for device in account.listed if device != by and since.get(device, 0) <= revision]


def _file(state: ShardState, device: int, entry: GroupEntry, body: Fanned | Enveloped) -> int:
    """The number under which the entry was filed; 0: the device has no room."""
    box = state.mailboxes.rows[device]
    assert box is not None
    if shares.is_for_known_accounts(state, box, len(entry.ciphertext)) and not _has_room(state, device, box, entry.by):
        return 0
    return file(state, device, box, body.lane, entry)


def _has_room(state: ShardState, device: int, box: Mailbox, by: int) -> bool:
    """Whether a crowded mailbox takes more of this author; of nobody: what the group itself says.

    A group must not be a way to keep a person's friends out: what is left of a crowded mailbox is theirs. Apart from
    that fellow members hold what there is room for.
    """
    if mailbox.is_full(state, box):
        return False
    return not by or not shares.is_stranger(state, account_of(device), by)


def _needs_known(state: ShardState, device: int, size: int, missing: list[Need]) -> None:
    box = state.mailboxes.rows.get(device)
    if box is not None and shares.is_for_known_accounts(state, box, size):
        missing_row(state.known, Kept.KNOWN, account_of(device), missing)


def _tell_failed(state: ShardState, fanned: Fanned, seqs: dict[int, int]) -> None:
    """A device without room fails alone; if none of an account's could take it, the account fails as a whole.

    Nobody is told of an author's own devices, and nobody of a notice.
    """
    for number, revision in fanned.audience:
        devices = _addressed(state.accounts[number], revision, fanned.by)
        full = [device for device in devices if not seqs[device]]
        if not fanned.by or number == account_of(fanned.by):
            state.ledger.fail(Reason.MAILBOX_FULL, len(full))
        elif not devices:
            state.ledger.owed += 1
            _fail(state, fanned, number << DEVICE_BITS, Reason.DEVICE_REMOVED)
        elif len(full) == len(devices):
            _fail(state, fanned, number << DEVICE_BITS, Reason.MAILBOX_FULL, len(full))
        else:
            for device in full:
                _fail(state, fanned, device, Reason.MAILBOX_FULL)


def _fail(state: ShardState, body: Fanned | Enveloped, device: int, reason: Reason, copies: int = 1) -> None:
    state.ledger.fail(reason, copies)
    failed = Receipted(
        body.by, body.group, body.lane, device, MessageState.FAILED, reason, state.now, ((body.n, body.n),)
    )
    state.tell(account_of(body.by), failed)


# --- for single devices -----------------------------------------------------------------------


def needs_enveloped(state: ShardState, _by: int, enveloped: Enveloped) -> list[Need]:
    missing: list[Need] = []
    for envelope in enveloped.envelopes:
        missing_row(state.accounts, Kept.ACCOUNT, account_of(envelope.device), missing)
        mailbox.needs_filing(state, envelope.device, enveloped.life_ms, len(enveloped.envelopes), missing)
        _needs_known(state, envelope.device, len(envelope.ciphertext), missing)
    return missing


def step_enveloped(state: ShardState, _by: int, _via: int, enveloped: Enveloped) -> None:
    """Each envelope is filed, or its author is told why not: a device that lacks a key must be served later."""
    e = enveloped
    places: list[tuple[int, int]] = []
    state.ledger.carried -= len(e.envelopes)
    state.ledger.owed += len(e.envelopes)
    for envelope in enveloped.envelopes:
        device = envelope.device
        account = state.accounts[account_of(device)]
        registration = account.listed.get(device) if account else None
        if registration is None:
            _fail(state, enveloped, device, Reason.DEVICE_REMOVED)
        elif registration != envelope.registration:
            _fail(state, enveloped, device, Reason.STALE_DEVICES)
        else:
            entry = GroupEntry(
                e.by,
                e.group,
                e.n,
                e.id,
                e.tag,
                e.kind,
                e.of,
                e.at,
                e.life_ms,
                envelope.ciphertext,
                e.of_seq,
                e.epoch,
                e.lane,
            )
            places.append((device, _file(state, device, entry, enveloped)))
            if not places[-1][1]:
                _fail(state, enveloped, device, Reason.MAILBOX_FULL)
    state.notes.append(Placed(e.at, e.by, e.group, e.lane, e.n, e.id, e.of, False, False, tuple(places)))
    state.noted.add(e.by)


STEPS: Steps = {4: {Fanned: (needs_fanned, step_fanned), Enveloped: (needs_enveloped, step_enveloped)}}
OPTIMISTIC = {Fanned}
