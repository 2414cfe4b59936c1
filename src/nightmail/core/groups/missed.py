"""What a device leaves behind in a group's log when it goes: its authors are told, as of a mailbox that ends.

Knows:   the log, and when the device's account was a member.
Touches: through `tell`, the receipts of the authors.
"""

from __future__ import annotations

from nightmail.core import mailbox
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState
from nightmail.model.ids import account_of, log_of
from nightmail.model.records import GroupMissed
from nightmail.model.rows import Mailbox, Need, queue_id
from nightmail.model.words import Lane, Reason

from .needs import needs_member
from .reading import was_addressed
from .verdicts import GroupVerdicts

PAGE = 256
"""Entries that are looked at in one step."""


def needs_missed(state: ShardState, _by: int, missed: GroupMissed) -> list[Need]:
    missing: list[Need] = []
    needs_member(state, missed.group, account_of(missed.device), missing)
    return missing + mailbox.needs_offer(state, log_of(missed.group), Lane.NORMAL, missed.after, PAGE)


def step_missed(state: ShardState, _by: int, _via: int, missed: GroupMissed) -> None:
    """A page of the log. What the account was not addressed with, and what it wrote itself, is nobody's loss."""
    number, device = missed.group, missed.device
    member, box = state.members[number, account_of(device)], state.mailboxes[log_of(number)]
    if member is None or box is None:
        return
    low, high = mailbox.page(box, Lane.NORMAL, missed.after + 1, PAGE)
    entries = state.entries.get(queue_id(log_of(number), Lane.NORMAL), {})
    verdicts = GroupVerdicts(device)
    for seq in range(low, high + 1):
        if (entry := entries.get(seq)) is not None and entry.by and was_addressed(member, seq):
            verdicts.fail(entry, Reason.DEVICE_REMOVED)
    verdicts.tell(state, Lane.NORMAL)
    if _has_more(box, high):
        state.derived.append(GroupMissed(number, device, high))


def _has_more(box: Mailbox, after: int) -> bool:
    return after < box.lanes[Lane.NORMAL].head


STEPS: Steps = {4: {GroupMissed: (needs_missed, step_missed)}}
