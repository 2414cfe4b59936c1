# pyright: reportPrivateUsage=false
"""Bugs in how keys are published, handed out and kept."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from nightmail.core import keys
from nightmail.core.state import ShardState
from nightmail.core.step import FOLDS
from nightmail.engine import cache, saver
from nightmail.engine.loop import Loop
from nightmail.model.records import Claimed, Record
from nightmail.model.rows import Kept

from .tools import Bug, Plant, edit, in_needs, method, swap, without

CLAIMS = ("claims",)
KEYS = ("tests/core/test_keys.py", "tests/scenarios", "tests/engine/test_cache.py")


def _from_memory() -> AbstractContextManager[None]:
    """A claim is answered at once, as a retry of a message is; the log never hears of it."""
    right = Loop.submit

    def submit(loop: Loop, record: Record, data: bytes | None = None) -> None:
        state = loop.state
        needs, step = FOLDS[state.shard.fold][Claimed]
        if (
            not isinstance(record.body, Claimed)
            or not loop.ready
            or loop._records
            or needs(state, record.by, record.body)
        ):
            right(loop, record, data)
        else:
            step(state, record.by, record.via, record.body)
            effects, state.effects = state.effects, []
            loop._on_effects(effects)

    return method(Loop, "submit", submit)


def _not_saved() -> AbstractContextManager[None]:
    right = saver.take_checkpoint

    def taken(*given: Any) -> Any:
        checkpoint = right(*given)
        return replace(checkpoint, rows=[row for row in checkpoint.rows if row[0] != Kept.KEYS])

    return swap(right, taken)


def _let_go_unsaved() -> AbstractContextManager[None]:
    def forget(state: ShardState) -> None:
        state.keys.rows.clear()
        state.keys.changed.clear()

    return swap(cache.forget_keys, forget)


def _early() -> AbstractContextManager[None]:
    """When a checkpoint is taken, not when it is saved: what is read meanwhile is old."""
    right = saver.take_checkpoint

    def taken(state: ShardState, *given: Any) -> Any:
        checkpoint = right(state, *given)
        state.keys.rows.clear()
        return checkpoint

    return swap(right, taken)


TWICE: Plant = edit(
    keys._take,
    "keys.one_time.pop(0) if keys.one_time else None",
    "keys.one_time[0] if keys.one_time else None",
)
KEM_TWICE: Plant = edit(
    keys._take,
    "keys.one_time_kem.pop(0) if keys.one_time_kem else None",
    "keys.one_time_kem[0] if keys.one_time_kem else None",
)

BUGS: tuple[Bug, ...] = (
    Bug("a claim is answered but its key is not taken out", TWICE, CLAIMS, KEYS),
    Bug("a claim leaves the KEM key where it was", KEM_TWICE, CLAIMS, KEYS),
    Bug("a claim is answered from memory and not logged", _from_memory, CLAIMS, KEYS),
    Bug("the newest key is handed out first", edit(keys._take, "keys.one_time.pop(0)", "keys.one_time.pop()"), CLAIMS,
        KEYS),
    Bug("a repeated request gets another key",
        edit(keys._claim, "claim.at > state.elapsed - limits.claims_kept_ms",
             "claim.at == state.elapsed"), CLAIMS, KEYS),
    Bug("a request of another device is taken for a repeat",
        edit(keys._claim, "keys.claims.get((by, claimed.request))",
             "next((c for (_, n), c in keys.claims.items() if n == claimed.request), None)"), CLAIMS, KEYS),
    Bug("an upload again adds its keys again", edit(keys._add, "if id_of(key) > highest", "if key not in stock"),
        CLAIMS, KEYS),
    Bug("the cap lets the newest key go", edit(keys._add, "del stock[: -most or None]", "del stock[most:]"), CLAIMS,
        KEYS),
    Bug("there is no cap", edit(keys._add, "if len(stock) > most:", "if len(stock) > 9 * most:"), CLAIMS, KEYS),
    Bug("that few keys are left is not told", edit(keys._mark, "if low:", "if False:"), CLAIMS, KEYS),
    Bug("the mark stays after an upload",
        edit(keys._publish, "_mark(state, account, by, keys)", "keys.low = keys.low"), CLAIMS, KEYS),
    Bug("an identity is overwritten",
        edit(keys.step_published, "keys is not None and keys.identity != new.identity", "False"), CLAIMS, KEYS),
    Bug("too many claims by one account are answered", edit(keys._wait_ms, "len(mine) >= most", "False"), CLAIMS, KEYS),
    Bug("claims are counted over all accounts",
        edit(keys._claims_of, "claim.at > since and who >> DEVICE_BITS == account", "claim.at > since"),
        CLAIMS, KEYS),
    Bug("so few claims are remembered that a repeat comes too late",
        edit(keys._take, "len(claims) > limits.claims_kept", "len(claims) > 8"), CLAIMS, KEYS),
    Bug("a claim does not say that its row changed",
        edit(keys._take, "state.keys.put(device, keys, state.offset)", "keys.low = keys.low"), CLAIMS, KEYS),
    Bug("keys are not saved", _not_saved, CLAIMS, KEYS),
    Bug("keys are let go before they are saved", _let_go_unsaved, CLAIMS, KEYS),
    Bug("keys are let go while they are being saved", _early, CLAIMS, KEYS),
    Bug("needs of Claimed miss the keys", in_needs(Claimed, without(Kept.KEYS)), CLAIMS, KEYS),
)  # fmt: skip
