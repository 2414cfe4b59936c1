"""One record at a time: which rows it needs, and which step takes it. Only puts the modules' tables together.

    L1  step depends only on (state after offset - 1, record): no clock, socket, disk, randomness.

Every record has a pair of functions. `needs` tells which rows are missing from memory; it is asked
until it names none, and only then may `step` run: check first, without a write, then apply,
without a raise. What follows from a record is left in `state.derived` and folded right after it.

The few that make up a message's life are spared the question (`OPTIMISTIC`): their steps look at
every row before they change the first one, so they may be tried. A KeyError means that a row is
not in memory and that nothing has happened yet: then `needs` is asked, and the step begins again.
"""

from __future__ import annotations

from nightmail.model.records import AnyBody

from . import (
    blocking,
    copies,
    devices,
    due,
    expiry,
    forwards,
    handles,
    keys,
    lock,
    mailbox,
    receipts,
    send,
    shard,
    shares,
)
from .blobs import audiences, uploads
from .blobs import looking as blob_looking
from .groups import accounts, chain, cursors, filing, membership, missed, sending
from .groups import receipts as group_receipts
from .letters import burying, endings
from .pushes import looking as wake_looking
from .pushes import outcomes, tokens
from .rules import Fold
from .schedules import firing, forgetting, looking, settling, taking
from .schedules import reading as schedule_reading
from .state import COMING_FOLD, NEWEST_FOLD

MODULES = (
    send,
    copies,
    mailbox,
    receipts,
    devices,
    handles,
    lock,
    keys,
    due,
    expiry,
    forwards,
    shard,
    burying,
    shares,
    blocking,
    chain,
    membership,
    accounts,
    sending,
    filing,
    group_receipts,
    cursors,
    missed,
    taking,
    looking,
    firing,
    settling,
    forgetting,
    schedule_reading,
    endings,
    tokens,
    wake_looking,
    outcomes,
    uploads,
    audiences,
    blob_looking,
)


def _merged(version: int) -> Fold:
    """Everything that fold `version` takes: a later version replaces what an earlier one said about a record."""
    fold: dict[type[AnyBody], object] = {}
    for earlier in range(1, version + 1):
        for module in MODULES:
            fold |= module.STEPS.get(earlier, {})
    return fold  # type: ignore[return-value]


FOLDS: dict[int, Fold] = {version: _merged(version) for version in (*range(1, NEWEST_FOLD + 1), COMING_FOLD)}
"""Fold version → what each record needs and does. A shard folds as its `FoldRaised` records say."""

OPTIMISTIC: frozenset[type[AnyBody]] = frozenset(
    kind for module in MODULES for kind in getattr(module, "OPTIMISTIC", ())
)
"""Records whose steps may be tried without asking for their needs."""
