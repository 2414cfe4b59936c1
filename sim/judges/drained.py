"""After healing, a server holds nothing that anybody still waits for, and a device nothing that it could tell."""

from __future__ import annotations

from nightmail.client.store.port import Store
from nightmail.client.store.rows import ReadMark
from nightmail.core.state import ShardState
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of


def left_over(state: ShardState) -> str:
    """What is still there, in words; nothing if nothing is."""
    for device, mailbox in state.mailboxes.items():
        if mailbox and mailbox.waiting and account_of(device) & 1:  # A group's log keeps what somebody has not fetched.
            return f"{mailbox.waiting} entries still wait for {device:x}"
    for device, receipts in state.receipts.items():
        if receipts and receipts.items:
            return f"{len(receipts.items)} receipts still wait for {device:x}"
    return ""


def has_untold_reading(store: Store) -> bool:
    """Whether something was read, and the server could be told.

    In a group everything up to a number is read, so what stands behind an unread message waits for its reader: one that
    came without its key is shown after those that followed it.
    """
    for row in store.marked(ReadMark.READING):
        peer = account_of(row.by)
        unread = store.marked(ReadMark.UNREAD, peer) if is_group(peer) else []
        if all(row.n < other.n for other in unread):
            return True
    return False
