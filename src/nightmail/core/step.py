"""One record at a time: which rooms it needs, and which step takes it. Only dispatches.

    L1  step depends only on (state after offset - 1, record): no clock, socket, disk, randomness.

Every record has a pair of functions. `needs` tells which rows are missing from memory; it is asked
until it names none, and only then may `step` run: check first, without a write, then apply,
without a raise. What follows from a record is left in `state.derived` and folded right after it.

The few that make up a message's life are spared the question (`LOOKS_FIRST`): their steps look at
every row before they change the first one, so they may be tried. A KeyError means that a row is
not in memory and that nothing has happened yet: then `needs` is asked, and the step begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from nightmail.model import records
from nightmail.model.records import AnyBody, FoldRaised, Forwarded, LimitsSet
from nightmail.model.rows import Need

from . import devices, due, endings, keys, lock, mailbox, receipts, send
from .state import State

Needs: TypeAlias = Callable[[State, int, Any], Sequence[Need]]
"""(state, author, body) → the rows that are missing."""
Step: TypeAlias = Callable[[State, int, int, Any], None]
"""(state, author, answer address, body)."""
Fold: TypeAlias = Mapping[type[AnyBody], tuple[Needs, Step]]


class FoldTooNew(Exception):
    """The log asks for a fold that this program does not know: it must be upgraded before it goes on."""

    def __init__(self, version: int, newest: int) -> None:
        self.version, self.newest = version, newest
        super().__init__(f"the log is folded as version {version} says; this program knows up to {newest}")


def _nothing(_state: State, _by: int, _body: AnyBody) -> Sequence[Need]:
    return ()


def _step_limits_set(state: State, _by: int, _via: int, limits_set: LimitsSet) -> None:
    state.shard.limits = limits_set.limits


def _step_fold_raised(state: State, _by: int, _via: int, raised: FoldRaised) -> None:
    if raised.version > state.newest_fold:
        raise FoldTooNew(raised.version, state.newest_fold)
    state.shard.fold = max(state.shard.fold, raised.version)


def _step_forwarded(state: State, _by: int, _via: int, forwarded: Forwarded) -> None:
    """Take what another shard says exactly once and in its order, however often it is said."""
    heard = state.shard.heard.get(forwarded.source, 0)
    if forwarded.k <= heard:
        return
    if forwarded.k > heard + 1:
        state.shard.out_of_chain += 1
        return
    state.shard.heard[forwarded.source] = forwarded.k
    state.derived.append(forwarded.body)


FOLDS: dict[int, Fold] = {
    1: {
        records.Sent: (send.needs_sent, send.step_sent),
        records.Voided: (send.needs_voided, send.step_voided),
        records.Copied: (send.needs_copied, send.step_copied),
        records.Acked: (mailbox.needs_acked, mailbox.step_acked),
        records.ChangesAcked: (receipts.needs_changes_acked, receipts.step_changes_acked),
        records.Read: (receipts.needs_read, receipts.step_read),
        records.Receipted: (receipts.needs_receipted, receipts.step_receipted),
        records.Registered: (devices.needs_registered, devices.step_registered),
        records.Linked: (devices.needs_registered, devices.step_linked),
        records.Listed: (devices.needs_account, devices.step_listed),
        records.Unlinked: (devices.needs_unlinked, devices.step_unlinked),
        records.Closed: (devices.needs_account, devices.step_closed),
        records.Blocked: (devices.needs_account, devices.step_blocked),
        records.ReceiptsSet: (devices.needs_account, devices.step_receipts_set),
        records.Published: (keys.needs_published, keys.step_published),
        records.Claimed: (keys.needs_claimed, keys.step_claimed),
        records.Relabelled: (devices.needs_relabelled, devices.step_relabelled),
        records.PinSet: (devices.needs_account, lock.step_pin_set),
        records.Ticked: (due.needs_ticked, due.step_ticked),
        records.Expired: (endings.needs_expired, endings.step_expired),
        records.Watched: (endings.needs_watched, endings.step_watched),
        records.Forwarded: (_nothing, _step_forwarded),
        records.LimitsSet: (_nothing, _step_limits_set),
        records.FoldRaised: (_nothing, _step_fold_raised),
    }
}
"""Fold version → what each record needs and does. A shard folds as its `FoldRaised` records say."""

LOOKS_FIRST: frozenset[type[AnyBody]] = frozenset(
    {records.Sent, records.Acked, records.ChangesAcked, records.Forwarded}
)
"""Records whose steps may be tried without asking for their needs."""
