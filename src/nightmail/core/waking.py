"""Something begins to wait for a device that can be woken: ask for a push, and plan when to look whether it helped.

Knows:   one mailbox, and the one moment at which it is looked at.
Touches: the mailbox and the due rows.
Never:   asks whether the device is connected: that is no business of the fold's, and most often it is.

A mailbox has one due item at most. Where one is planned already it stays, however often the mailbox was emptied and
filled since: so a busy conversation costs one item in `wake_patience_ms`, and a drained mailbox none to take back.
`core/pushes/looking.py` decides when the item fires.
"""

from __future__ import annotations

from nightmail.model.effects import Wake
from nightmail.model.rows import DueFor, DueItem, Mailbox, Need
from nightmail.model.words import Lane

from . import due
from .state import ShardState


def needs_begin(state: ShardState, mailbox: Mailbox, count: int, missing: list[Need]) -> None:
    """What `begin` will touch for this mailbox, one of `count`."""
    if mailbox.push and not mailbox.wake_due:
        needs_plan(state, count, missing)


def needs_plan(state: ShardState, count: int, missing: list[Need]) -> None:
    due.needs_schedule(state, _patience(state), count, missing)


def begin(state: ShardState, device: int, mailbox: Mailbox) -> None:
    """The mailbox, whose device has a push token, was empty until now. The caller notes that it has changed."""
    elapsed = state.elapsed
    mailbox.woke_at = elapsed if elapsed > mailbox.woke_at else mailbox.woke_at + 1
    if not mailbox.wake_due:
        plan(state, device, mailbox, _patience(state))
    state.effects.append(Wake(device))


def plan(state: ShardState, device: int, mailbox: Mailbox, moment: int) -> None:
    """Have the mailbox looked at then, and not when it was planned before."""
    if moment != mailbox.wake_due:
        mailbox.wake_due = moment
        due.schedule(state, moment, DueItem(device, Lane.NORMAL, moment, DueFor.WAKE))


def moment_at(state: ShardState, elapsed_ms: int) -> int:
    """The moment that has begun when so much time has elapsed; the next one, if that is in the past."""
    later = max(elapsed_ms, state.elapsed + due.SLOT_MS)
    return due.moment_of(state, later - state.shard.set_back_ms)


def _patience(state: ShardState) -> int:
    return moment_at(state, state.elapsed + state.shard.limits.wake_patience_ms)
