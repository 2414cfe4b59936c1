"""A mailbox is looked at whose device may have to be woken.

Knows:   the mailbox, the device's token, and how far waking it has come.
Touches: the mailbox, and the due rows.
Never:   pushes before `next_at`, or for what is drained.
"""

from __future__ import annotations

from nightmail.core import due, waking
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState
from nightmail.model.effects import Wake
from nightmail.model.push_rows import PushTarget
from nightmail.model.records import WakeLooked
from nightmail.model.rows import Mailbox, Need

from .reading import is_undrained, needs_wake


def needs_looked(state: ShardState, _by: int, looked: WakeLooked) -> list[Need]:
    missing: list[Need] = []
    mailbox = needs_wake(state, looked.device, missing)
    if mailbox is not None and mailbox.wake_due == looked.moment and (moment := _next_look(state, looked.device)):
        due.needs_schedule(state, moment, 1, missing)
    return missing


def step_looked(state: ShardState, _by: int, _via: int, looked: WakeLooked) -> None:
    device = looked.device
    mailbox = state.mailboxes[device]
    if mailbox is None or not mailbox.push or mailbox.wake_due != looked.moment:
        return
    target, moment = state.pushes.there(device), _next_look(state, device)
    mailbox.wake_due = 0
    if not is_undrained(state, device, mailbox):
        mailbox.marked = False
    elif moment:
        if _push_at(state, mailbox, target) <= state.elapsed:
            state.effects.append(Wake(device))
        waking.plan(state, device, mailbox, moment)
    state.mailboxes.put(device, mailbox, state.offset)


def _next_look(state: ShardState, device: int) -> int:
    """The moment to look again; 0: nothing waits, or the last push of this wake was made."""
    mailbox, target = state.mailboxes.there(device), state.pushes.there(device)
    if not is_undrained(state, device, mailbox):
        return 0
    push_at = _push_at(state, mailbox, target)
    if not push_at:
        return 0
    if push_at > state.elapsed:
        return waking.moment_at(state, push_at)
    return waking.moment_at(state, state.elapsed + state.shard.limits.wake_patience_ms)


def _push_at(state: ShardState, mailbox: Mailbox, target: PushTarget) -> int:
    """When the next push is to be asked for, by elapsed time; 0: never for this wake."""
    if target.woke_at == mailbox.woke_at:
        return target.next_at
    # Nobody has told of a push: its device may have been connected, or the outlet has crashed.
    return mailbox.woke_at + state.shard.limits.wake_patience_ms


STEPS: Steps = {6: {WakeLooked: (needs_looked, step_looked)}}
