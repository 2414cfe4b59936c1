"""Encodes rows, entries and notes before their checkpoint is taken, so that taking it blocks the loop for less time.

Knows:   which rows have not changed for a while, the entries filed and the delivery log's lines so far.
Touches: the state, to read rows and entries and to take its lines.
Never:   decides what a checkpoint holds. A row that has changed since is encoded again (law L4: a
         row's version determines its bytes); an entry never changes, but one that has ended is left out.

Early is also cheaper: a row that has just changed is still in the processor's caches, and a line is
90 bytes encoded instead of 600 as objects that the garbage collector has to visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, repeat, zip_longest
from typing import Any, NamedTuple

import msgspec

from nightmail.core.state import SHARD, ShardState, Table, encode_row
from nightmail.model.notes import Note
from nightmail.model.rows import PAIRED, Kept

from .ports import Saving, saving

REST_MS = 100
"""A row that has not changed for this long is encoded: most conversations have paused by then."""
LINES = 256
"""Fewer lines than this wait for more."""
PIECE_LINES = 1_000
"""The most lines in one piece: encoding or decoding a piece blocks every other thread."""
ENTRIES_SHARE = 32
"""An entry is encoded after 1/32 of `checkpoint_bytes` more was filed: most are acknowledged before."""

VERSION = 3
"""Where a row's version is in `Saving`."""

_encode = msgspec.msgpack.Encoder().encode


class _Mark(NamedTuple):
    at: int
    offset: int
    changed: list[int]
    """How many rows of each table had changed."""


class _EarlyRows:
    """The rows of one table that were encoded early, as of the version that each carries."""

    __slots__ = ("_kind", "_ready", "_restless", "_table")

    def __init__(self, kind: Kept, table: Table[Any, Any]) -> None:
        self._kind, self._table = kind, table
        self._ready: list[Saving | None] = []
        """In the order of each row's first change. None: not encoded yet."""
        self._restless: list[tuple[int, Any]] = []
        """The places of those in `_ready`, and their numbers: they are tried again."""

    def encode(self, count: int, upto: int) -> None:
        """Encode those of the first `count` rows that have not changed since offset `upto`."""
        rows, changed, ready = self._table.rows, self._table.changed, self._ready
        new = islice(changed, len(ready), count)
        looked, self._restless = [*self._restless, *enumerate(new, len(ready))], []
        ready += repeat(None, count - len(ready))
        for place, number in looked:
            version = changed[number]
            if version <= upto:
                ready[place] = _save(self._kind, number, version, rows[number])
            else:
                self._restless.append((place, number))

    def take(self) -> list[Saving]:
        """All rows that changed, as they are now."""
        kind, rows = self._kind, self._table.rows
        return [
            early if early and early[VERSION] == version else _save(kind, number, version, rows[number])
            for (number, version), early in zip_longest(self._table.changed.items(), self._ready)
        ]


class _EarlyEntries:
    """The entries that were encoded early."""

    __slots__ = ("_bytes", "_ready", "_seen", "_step_bytes", "_upto")

    def __init__(self, step_bytes: int) -> None:
        self._step_bytes = step_bytes
        self._ready: dict[tuple[int, int], bytes] = {}
        self._seen: list[tuple[int, int, int]] = []
        """(queue, low, high): entries that were new at the last call of `encode`."""
        self._upto: dict[int, int] = {}
        """Queue → entries up to here are encoded or seen."""
        self._bytes = 0
        """How much had been filed at that call."""

    def encode(self, state: ShardState) -> None:
        """Encode entries that were seen at the last call and still wait, once enough was filed since."""
        filed = state.filed_bytes
        self._bytes = min(self._bytes, filed)
        if filed - self._bytes < self._step_bytes:
            return
        self._bytes = filed
        for queue, low, high in self._seen:
            if entries := state.entries.get(queue):
                for seq in range(low, high + 1):
                    if (entry := entries.get(seq)) is not None:
                        self._ready[queue, seq] = encode_row(entry)
        self._seen.clear()
        for queue, first in state.filed.items():
            if state.entries.get(queue):
                head = state.mailboxes.there(queue >> 1).lanes[queue & 1].head
                self._seen.append((queue, self._upto.get(queue, first - 1) + 1, head))
                self._upto[queue] = head

    def take(self, state: ShardState) -> list[tuple[int, int, bytes]]:
        """All entries filed that still wait."""
        ready = self._ready
        return [
            (queue, seq, ready.get((queue, seq)) or encode_row(entry))
            for queue, first in state.filed.items()
            for seq, entry in state.entries.get(queue, {}).items()
            if seq >= first
        ]


class EarlyEncoding:
    """One checkpoint's worth: `look` now and then, then the three `take_…`, then `clear`."""

    def __init__(self, checkpoint_bytes: int = 0) -> None:
        self._step_bytes = checkpoint_bytes // ENTRIES_SHARE
        self._tables: list[_EarlyRows] = []
        self._entries = _EarlyEntries(self._step_bytes)
        self.lines = 0
        """How many lines were taken from the state."""
        self.pieces: list[bytes] = []
        """Those lines, encoded."""
        self._mark: _Mark | None = None

    def look(self, state: ShardState, now: int) -> None:
        """To be called a few times a second, between two records."""
        if len(state.notes) >= LINES:
            self._take_lines(state)
        self._entries.encode(state)
        mark = self._mark
        if mark is not None and now - mark.at < REST_MS:
            return
        if mark is not None:
            for table, count in zip(self._of(state), mark.changed, strict=True):
                table.encode(count, mark.offset)
        self._mark = _Mark(now, state.offset, [len(table.changed) for table in state.tables()])

    def take_rows(self, state: ShardState) -> list[Saving]:
        """All rows that changed since the last checkpoint, as they are now."""
        taken: list[Saving] = [saving(SHARD, state.offset, encode_row(state.shard))]
        for table in self._of(state):
            taken += table.take()
        return taken

    def take_entries(self, state: ShardState) -> list[tuple[int, int, bytes]]:
        """All entries filed since the last checkpoint that still wait."""
        return self._entries.take(state)

    def take_notes(self, state: ShardState) -> list[bytes]:
        """All lines since the last checkpoint."""
        self._take_lines(state)
        return self.pieces

    def clear(self) -> None:
        """Begin again: a checkpoint was taken, or the state was replaced."""
        self._tables, self._entries, self.pieces = [], _EarlyEntries(self._step_bytes), []
        self.lines, self._mark = 0, None

    def _take_lines(self, state: ShardState) -> None:
        self.lines += len(state.notes)
        self.pieces += encode_pieces(state.notes)
        state.notes.clear()

    def _of(self, state: ShardState) -> list[_EarlyRows]:
        if not self._tables:
            kinds = (*state.by_pair, *state.by_number)
            self._tables = [_EarlyRows(kind, table) for kind, table in zip(kinds, state.tables(), strict=True)]
        return self._tables


def _save(kind: Kept, number: Any, version: int, row: object) -> Saving:
    a, b = number if kind in PAIRED else (number, 0)
    return kind, a, b, version, None if row is None else encode_row(row)


def encode_pieces(notes: Sequence[Note]) -> Iterator[bytes]:
    """Lines of the delivery log in the form in which it stores them."""
    for first in range(0, len(notes), PIECE_LINES):
        yield _encode(notes[first : first + PIECE_LINES])
