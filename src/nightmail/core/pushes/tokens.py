"""A device's push token: set, replaced, removed.

Knows:   one device of an account.
Touches: its token, and its mailbox, which says that there is one.
"""

from __future__ import annotations

from nightmail.core import waking
from nightmail.core.rights import check_rights
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import account_of
from nightmail.model.push_rows import PushTarget
from nightmail.model.records import PushRemoved, PushSet
from nightmail.model.rows import Kept, Need

from .reading import is_undrained


def needs_token(state: ShardState, by: int, _body: PushSet | PushRemoved) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account_of(by), missing)
    missing_row(state.pushes, Kept.PUSH, by, missing)
    missing_row(state.receipts, Kept.RECEIPTS, by, missing)
    if not missing_row(state.mailboxes, Kept.MAILBOX, by, missing):
        waking.needs_plan(state, 1, missing)
    return missing


def step_set(state: ShardState, by: int, via: int, new: PushSet) -> None:
    """The same token again changes nothing: a device may say it at each start."""
    said = _refusal(state, by)
    target = state.pushes[by]
    if said is None and (target is None or (target.platform, target.token) != (new.platform, new.token)):
        mailbox = state.mailboxes.there(by)
        letter = target.letter if target else 0
        state.pushes.put(by, PushTarget(new.platform, new.token, state.offset, letter=letter), state.offset)
        mailbox.push = True
        if is_undrained(state, by, mailbox):
            waking.begin(state, by, mailbox)  # What waits was pushed to another token, or to none.
        state.mailboxes.put(by, mailbox, state.offset)
    state.effects.append(Answer(via, said or Done()))


def step_removed(state: ShardState, by: int, via: int, _removed: PushRemoved) -> None:
    said = _refusal(state, by)
    if said is None and state.pushes[by] is not None:
        remove(state, by)
    state.effects.append(Answer(via, said or Done()))


def remove(state: ShardState, device: int) -> None:
    """There is no token any more. An item that is planned finds nothing to do."""
    mailbox = state.mailboxes.there(device)
    mailbox.push, mailbox.wake_due = False, 0
    state.mailboxes.put(device, mailbox, state.offset)
    state.pushes.put(device, None, state.offset)


def _refusal(state: ShardState, by: int) -> Said | None:
    return check_rights(by, state.accounts[account_of(by)], account_of(by))


STEPS: Steps = {6: {PushSet: (needs_token, step_set), PushRemoved: (needs_token, step_removed)}}
