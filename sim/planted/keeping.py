# pyright: reportPrivateUsage=false
"""Bugs in what a checkpoint holds, and in what is put into memory and let go of."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from nightmail.core.state import ShardState, Table, decode_entry
from nightmail.engine import cache, early_encoding, saver
from nightmail.engine.ports import Checkpoint
from nightmail.model.rows import Kept, RowKey

from .tools import LOOP, Bug, Plant, edit_method, method, swap


def _checkpoint(spoil: Callable[[Checkpoint], Checkpoint]) -> Plant:
    def plant() -> AbstractContextManager[None]:
        right = saver.take_checkpoint
        return swap(right, lambda *given: spoil(right(*given)))

    return plant


def _without_kind(kind: Kept) -> Plant:
    return _checkpoint(lambda taken: replace(taken, rows=[row for row in taken.rows if row[0] != kind]))


def _without_one(taken: Checkpoint) -> Checkpoint:
    """One row is passed over, if there are several of its kind."""
    boxes = [row for row in taken.rows if row[0] == Kept.MAILBOX]
    return replace(taken, rows=[row for row in taken.rows if len(boxes) < 2 or row is not boxes[-1]])


def _over_newer_ones() -> AbstractContextManager[None]:
    """What was read is put in place of what is there."""
    right = ShardState.install

    def install(state: ShardState, key: RowKey, data: bytes | None) -> None:
        if key.kind in state.by_pair:
            dict.pop(state.by_pair[key.kind].rows, (key.a, key.b), None)
        elif key.kind is not Kept.SHARD:
            dict.pop(state.by_number[key.kind].rows, key.a, None)
        right(state, key, data)

    return method(ShardState, "install", install)


def _back_from_the_dead() -> AbstractContextManager[None]:
    """Whatever the store has is taken for waiting."""

    def install_entries(state: ShardState, number: int, stored: Iterable[tuple[int, bytes]]) -> None:
        entries = state.entries.setdefault(number, {})
        for seq, data in stored:
            entries.setdefault(seq, decode_entry(data))

    return method(ShardState, "install_entries", install_entries)


def _let_go_of_changes() -> AbstractContextManager[None]:
    """Memory is made by dropping the oldest rows, saved or not."""

    def oldest(table: Table[Any, Any], wanted: int) -> list[Any]:
        idle = list(table)[:wanted]
        for key in idle:
            table.changed.pop(key, None)
        return idle

    return swap(cache._oldest_unchanged, oldest)


def _saved_although_ended() -> AbstractContextManager[None]:
    """All that was encoded is taken, whether it still waits or not."""
    right = early_encoding._EarlyEntries.take

    def take(early: early_encoding._EarlyEntries, state: ShardState) -> list[tuple[int, int, bytes]]:
        waiting = {(queue, seq): data for queue, seq, data in right(early, state)}
        return [(*at, data) for at, data in (early._ready | waiting).items()]

    return method(early_encoding._EarlyEntries, "take", take)


def _let_go_of_what_was_filed() -> AbstractContextManager[None]:
    """Every entry in memory counts as one that the store holds."""
    right = saver.Saver.tidy

    def tidy(self: saver.Saver, state: ShardState) -> None:
        self._found = [(queue, seq) for queue, entries in state.entries.items() for seq in entries]
        right(self, state)

    return method(saver.Saver, "tidy", tidy)


def _let_go_too_early() -> AbstractContextManager[None]:
    """Memory is made whenever there is too little, also while what was taken is being saved."""
    right = saver.Saver.look_ahead

    def look_ahead(self: saver.Saver, state: ShardState, now: int) -> None:
        cache.shrink(state, self._limits.rows_in_memory)
        right(self, state, now)

    return method(saver.Saver, "look_ahead", look_ahead)


BUGS = (
    Bug("the watermark is reset on a restart", _without_kind(Kept.STREAM), ("node", "cluster"), LOOP),
    Bug("a checkpoint skips a changed row", _checkpoint(_without_one), ("node", "cluster"), LOOP),
    Bug("a checkpoint skips the shard's own row", _without_kind(Kept.SHARD), ("node", "cluster"), LOOP),
    Bug("a checkpoint skips an entry",
        _checkpoint(lambda taken: replace(taken, entries=taken.entries[:-1])), ("node", "cluster"), LOOP),
    Bug("an acknowledged entry stays in the store",
        _checkpoint(lambda taken: replace(taken, cleared=())), ("node",), LOOP),
    Bug("an ended entry comes back from the store", _back_from_the_dead, ("node", "cluster"), LOOP, seconds=20),
    Bug("stale rows are put over changed ones", _over_newer_ones, ("cluster",), LOOP),
    Bug("a changed row is let go before it is saved", _let_go_of_changes, ("node", "cluster"), LOOP),
    Bug("a row is let go while it is being saved", _let_go_too_early, ("node", "cluster"), LOOP),
    Bug("an entry that was filed is let go before it is saved", _let_go_of_what_was_filed, ("node", "cluster"), LOOP),
    Bug("a row that was encoded early is saved although it changed since",
        edit_method(early_encoding._EarlyRows, "take", "early and early[VERSION] == version", "early"),
        ("node", "cluster"), LOOP),
    Bug("an entry that ended is saved because it was encoded early", _saved_although_ended, ("node",), LOOP),
    Bug("entries that were encoded early are mixed up",
        edit_method(early_encoding._EarlyEntries, "encode",
                    "self._ready[queue, seq] =", "self._ready[queue, seq + 1] ="),
        ("node", "cluster"), LOOP),
    Bug("rows that were encoded early are mixed up",
        edit_method(early_encoding._EarlyRows, "encode", "ready[place] =", "ready[place - 1] ="),
        ("node", "cluster"), LOOP),
)  # fmt: skip
