"""After healing, a server holds nothing that anybody still waits for."""

from __future__ import annotations

from nightmail.core.state import ShardState
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
