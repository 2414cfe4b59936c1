"""After healing, a server holds nothing that anybody still waits for."""

from __future__ import annotations

from nightmail.core.state import ShardState


def left_over(state: ShardState) -> str:
    """What is still there, in words; nothing if nothing is."""
    for device, mailbox in state.mailboxes.items():
        if mailbox and mailbox.waiting:
            return f"{mailbox.waiting} entries still wait for {device:x}"
    for device, receipts in state.receipts.items():
        if receipts and receipts.items:
            return f"{len(receipts.items)} receipts still wait for {device:x}"
    return ""
