"""After healing, a server holds nothing that anybody still waits for."""

from __future__ import annotations

from nightmail.core.state import State


def left_over(state: State) -> str:
    """What is still there, in words; nothing if nothing is."""
    for device, mailbox in state.mailboxes.items():
        if mailbox and mailbox.waiting:
            return f"{mailbox.waiting} entries still wait for {device:x}"
    for device, changes in state.changes.items():
        if changes and changes.items:
            return f"{len(changes.items)} receipts still wait for {device:x}"
    return ""
