"""What a push needs to know, and what is seen of a device's token.

Knows:   a mailbox, its device's push token, and the receipts among which groups leave their marks.
Never:   changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightmail.core.state import ShardState, missing_row
from nightmail.model.push_rows import PushSeen, PushTarget
from nightmail.model.rows import Kept, Mailbox, Need, ReceiptKey
from nightmail.model.words import PushPlatform


def needs_push(state: ShardState, device: int) -> list[Need]:
    missing: list[Need] = []
    needs_wake(state, device, missing)
    return missing


def needs_wake(state: ShardState, device: int, missing: list[Need]) -> Mailbox | None:
    """The rows that say whether a device must be woken; the mailbox if it can be, and all are here."""
    if missing_row(state.mailboxes, Kept.MAILBOX, device, missing):
        missing_row(state.pushes, Kept.PUSH, device, missing)
        return None
    mailbox = state.mailboxes[device]
    if mailbox is None or not mailbox.push:
        return None
    is_missing = missing_row(state.pushes, Kept.PUSH, device, missing)
    if mailbox.marked:
        is_missing = missing_row(state.receipts, Kept.RECEIPTS, device, missing) or is_missing
    return None if is_missing else mailbox


def push_seen(state: ShardState, device: int) -> PushSeen | None:
    """None: nothing waits for the device that may wake it, or it has no token."""
    mailbox = state.mailboxes[device]
    if mailbox is None or not mailbox.push or not is_undrained(state, device, mailbox):
        return None
    target = state.pushes.there(device)
    depth = mailbox.waiting + (marks(state, device) if mailbox.marked else 0)
    attempt = attempt_of(mailbox, target)
    is_due = target.woke_at != mailbox.woke_at or 0 < target.next_at <= state.elapsed
    return PushSeen(device, target.platform, target.token, target.since, mailbox.woke_at, attempt, depth, is_due)


def attempt_of(mailbox: Mailbox, target: PushTarget) -> int:
    """The number of the next push of the present wake: its outcome counts once."""
    return target.attempt if target.woke_at == mailbox.woke_at else 0


def is_undrained(state: ShardState, device: int, mailbox: Mailbox) -> bool:
    return mailbox.waking > 0 or (mailbox.marked and marks(state, device) > 0)


def marks(state: ShardState, device: int) -> int:
    """How many groups' logs have something for the device, as far as it has not heard of it."""
    receipts = state.receipts[device]
    return sum(map(is_mark, receipts.items)) if receipts else 0


def is_mark(key: ReceiptKey) -> bool:
    """Whether a receipt says: look at the log of this group. Groups have even numbers."""
    return not key[0] and not key[1] & 1


def needs_platforms(state: ShardState, devices: Sequence[int]) -> list[Need]:
    missing: list[Need] = []
    for device in devices:
        missing_row(state.pushes, Kept.PUSH, device, missing)
    return missing


def platforms_seen(state: ShardState, devices: Sequence[int]) -> dict[int, PushPlatform]:
    """Those that have a token."""
    return {device: target.platform for device in devices if (target := state.pushes[device])}
