"""What the next checkpoint will hold, encoded before it is taken: so that taking it keeps the loop for less.

Knows:   which rows have come to rest since they changed, and the delivery log's lines so far.
Touches: the state, to read rows and to take its lines.
Never:   decides what a checkpoint holds. A row that has changed since is encoded again (law L4: a
         row's version determines its bytes).

Both are cheaper soon than late: a row that has just changed is still in the processor's caches,
and a line is 90 bytes encoded instead of 600 as objects, which Python's collector need not visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from nightmail.core.state import SHARD, State, Table, encode_row
from nightmail.model.notes import Note
from nightmail.model.rows import Kept, RowKey

from .ports import Saving

REST_MS = 200
"""A row that has not changed for this long is encoded: most talks have paused by then."""
LINES = 256
"""Fewer lines than this wait for more."""

_encode = msgspec.msgpack.Encoder().encode
_HEADER_BYTES = 5
_SHORT, _MIDDLE = 16, 1 << 16
"""From so many on, msgpack writes an array's length in two bytes, and in four."""


class _Mark(NamedTuple):
    at: int
    offset: int
    changed: list[int]
    """How many rows of each table had changed."""


class Ahead:
    def __init__(self) -> None:
        self._rows: list[dict[Any, Saving]] = []
        """Of each table, by their keys in it, as of the version they carry."""
        self.lines = 0
        """How many lines were taken from the state."""
        self._pieces: list[bytes] = []
        self._looked: list[int] = []
        self._mark: _Mark | None = None

    def look(self, state: State, now: int) -> None:
        """To be called a few times a second, between two records."""
        if len(state.notes) >= LINES:
            self._take_lines(state)
        if self._mark is None:
            self._mark = self._where(state, now)
        elif now - self._mark.at >= REST_MS:
            self._encode_rows(state, self._mark)
            self._mark = self._where(state, now)

    def take_rows(self, state: State) -> list[Saving]:
        """All rows that changed since the last checkpoint, as they are now."""
        taken = [_encoded(SHARD, state.offset, state.shard)]
        for kind, table, rows in self._tables(state):
            ready = rows.get
            taken += [
                row if (row := ready(number)) and row.version == version else _save(kind, table, number, version)
                for number, version in table.changed.items()
            ]
        return taken

    def take_notes(self, state: State) -> bytes:
        """All lines since the last checkpoint, as one block."""
        if state.notes:
            self._take_lines(state)
        return self.notes()

    def notes(self, before: bytes = b"") -> bytes:
        """The lines taken so far, as one block, behind those of the block `before`."""
        count = self.lines + int.from_bytes(before[1:_HEADER_BYTES], "big")
        if not count:
            return b""
        return b"".join((b"\xdd", count.to_bytes(4, "big"), before[_HEADER_BYTES:], *self._pieces))

    def clear(self) -> None:
        """A checkpoint was taken, or the state is another."""
        self._rows, self._pieces, self._looked = [], [], []
        self.lines, self._mark = 0, None

    def _take_lines(self, state: State) -> None:
        self.lines += len(state.notes)
        self._pieces.append(_elements(state.notes))
        state.notes.clear()

    def _where(self, state: State, now: int) -> _Mark:
        return _Mark(now, state.offset, [len(table.changed) for table in state.tables()])

    def _encode_rows(self, state: State, mark: _Mark) -> None:
        """Those that had changed by the mark and have not changed since."""
        looked = self._looked or [0] * len(mark.changed)
        for (kind, table, rows), low, high in zip(self._tables(state), looked, mark.changed, strict=True):
            for number, version in islice(table.changed.items(), low, high):
                if version <= mark.offset:
                    rows[number] = _save(kind, table, number, version)
        self._looked = mark.changed

    def _tables(self, state: State) -> Iterator[tuple[Kept, Table[Any, Any], dict[Any, Saving]]]:
        tables = state.tables()
        if not self._rows:
            self._rows = [{} for _ in tables]
        return zip((Kept.STREAM, *state.by_number), tables, self._rows, strict=True)


def _save(kind: Kept, table: Table[Any, Any], number: Any, version: int) -> Saving:
    key = RowKey(kind, *number) if kind is Kept.STREAM else RowKey(kind, number)
    return _encoded(key, version, table[number])


def _encoded(key: RowKey, version: int, row: object) -> Saving:
    return Saving(key, version, None if row is None else encode_row(row))


def _elements(notes: Sequence[Note]) -> bytes:
    """Their encoding as an array, without its header: so that arrays can be joined."""
    count = len(notes)
    return _encode(notes)[1 if count < _SHORT else 3 if count < _MIDDLE else _HEADER_BYTES :]
