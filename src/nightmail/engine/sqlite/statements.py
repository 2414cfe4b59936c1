"""The SQL statements of a checkpoint, and how its rows are passed to them.

Knows:   the tables, and which of them holds a row.
Touches: the connection that it is given, inside the caller's transaction.

Each table gets one statement per checkpoint, fed by carray: SQLite then runs it whole without
asking for Python's lock, so it does not stop a busy loop row by row. A carray is one column,
so a row's numbers are fixed-width digits in front of its bytes.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterable

import apsw

from nightmail.engine.ports import Checkpoint, Saving
from nightmail.model.rows import Kept, RowKey

from .row_sums import ENTRY, FORWARD, sum_meta, sum_note, sum_piece, summed

# A number at each place of a packed key.
_1 = "CAST(substr(value, 1, 20) AS INTEGER)"
_2 = "CAST(substr(value, 21, 20) AS INTEGER)"
_3 = "CAST(substr(value, 41, 20) AS INTEGER)"
_4 = "CAST(substr(value, 61, 20) AS INTEGER)"

# ruff: noqa: S608 (nothing but the four constants above and our own tables' names is put into a statement)
_PUT = f"INSERT OR REPLACE INTO {{}} SELECT {_1}, {_2}, substr(value, 41) FROM carray(?)"
_DROP = f"DELETE FROM {{}} WHERE a IN (SELECT {_1} FROM carray(?))"
_READ = "SELECT version, value FROM {} WHERE a = ?"
NUMBERED = {Kept.ACCOUNT: "account", Kept.MAILBOX: "mailbox", Kept.RECEIPTS: "changes", Kept.KEYS: "keys"}
"""Kinds with a table of their own, under one number. A key with a second number (there is none) is in `row`."""

PUT_NUMBERED = {kind: _PUT.format(table) for kind, table in NUMBERED.items()}
DROP_NUMBERED = {kind: _DROP.format(table) for kind, table in NUMBERED.items()}
READ_NUMBERED = {kind: _READ.format(table) for kind, table in NUMBERED.items()}

# Not REPLACE: it would give the row another rowid, and write the index again.
PUT_STREAMS = f"""
    INSERT INTO stream (a, b, version, value) SELECT {_1}, {_2}, {_3}, substr(value, 61) FROM carray(?) WHERE true
    ON CONFLICT (a, b) DO UPDATE SET version = excluded.version, value = excluded.value"""
DROP_STREAMS = f"DELETE FROM stream WHERE (a, b) IN (SELECT {_1}, {_2} FROM carray(?))"
READ_STREAM = "SELECT version, value FROM stream WHERE a = ? AND b = ?"

PUT_ROWS = f"INSERT OR REPLACE INTO row SELECT {_1}, {_2}, {_3}, {_4}, substr(value, 81) FROM carray(?)"
DROP_ROWS = f"DELETE FROM row WHERE (kind, a, b) IN (SELECT {_1}, {_2}, {_3} FROM carray(?))"
READ_ROW = "SELECT version, value FROM row WHERE kind = ? AND a = ? AND b = ?"
SCAN_ROWS = "SELECT a, b, version, value FROM row WHERE kind = ? AND (a, b) > (?, ?) ORDER BY a, b LIMIT ?"

_PUT_ENTRIES = f"INSERT OR REPLACE INTO entry SELECT {_1}, {_2}, substr(value, 41) FROM carray(?)"
_CLEAR_ENTRIES = f"""
    DELETE FROM entry WHERE (queue, seq) IN (
        -- CROSS JOIN keeps the order: for each queue given, its entries by the primary key.
        SELECT e.queue, e.seq FROM carray(?) CROSS JOIN entry e ON e.queue = {_1} AND e.seq <= {_2}
    )"""
_DROP_ENTRIES = f"DELETE FROM entry WHERE (queue, seq) IN (SELECT {_1}, {_2} FROM carray(?))"
_PUT_NOTE = "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?)"
_PUT_PIECE = "INSERT OR REPLACE INTO piece VALUES (?, ?, ?)"
_PUT_FORWARDS = f"INSERT OR REPLACE INTO forward SELECT {_1}, {_2}, substr(value, 41) FROM carray(?)"
_MOVE_POINTER = "UPDATE meta SET value = iif(key = 'pointer', ?, ?) WHERE key IN ('pointer', 'sum')"

READ_OLD_NOTE = "SELECT upto FROM note WHERE at < ? ORDER BY at LIMIT 1"
DROP_PIECE = """
    DELETE FROM piece WHERE rowid = (SELECT rowid FROM piece WHERE upto = ? ORDER BY nth DESC LIMIT 1)
    RETURNING length(lines)"""
DROP_NOTE = "DELETE FROM note WHERE upto = ? RETURNING length(devices) + length(lines)"
READ_RANGE = "SELECT seq, body FROM entry WHERE queue = ? AND seq BETWEEN ? AND ? ORDER BY seq"
READ_FORWARDS = "SELECT k, record FROM forward WHERE shard = ? AND k > ? AND k <= ? ORDER BY k LIMIT ?"
DROP_FORWARDS = "DELETE FROM forward WHERE shard = ? AND k <= ?"
READ_FIRST_NOTE = "SELECT upto FROM note WHERE at >= ? ORDER BY at, upto LIMIT 1"
# Few rows per query: a reader keeps the write-ahead log from being truncated.
READ_NOTES = "SELECT upto, iif(at >= ?, devices, x'') FROM note WHERE upto >= ? ORDER BY upto LIMIT 16"
READ_FIRST_PIECE = "SELECT at, devices, lines FROM note WHERE upto = ?"
READ_PIECE = "SELECT lines FROM piece WHERE upto = ? AND nth = ?"


def read_row(key: RowKey) -> tuple[str, tuple[int, ...]]:
    """The statement that finds a row, and its bindings."""
    kind, a, b = key
    if kind is Kept.STREAM:
        return READ_STREAM, (a, b)
    if kind in NUMBERED and not b:
        return READ_NUMBERED[kind], (a,)
    return READ_ROW, key


def write(db: apsw.Connection, checkpoint: Checkpoint, identity: bytes) -> None:
    """Each row, entry and forward with its checksum (`row_sums.py`)."""
    _write_rows(db, checkpoint.rows)
    _give(db, _PUT_ENTRIES, [summed(b"%20d%20d%b" % entry, ENTRY) for entry in checkpoint.entries])
    _give(db, _CLEAR_ENTRIES, [b"%20d%20d" % pair for pair in checkpoint.cleared])
    _give(db, _DROP_ENTRIES, [b"%20d%20d" % pair for pair in checkpoint.dropped])
    _give(db, _PUT_FORWARDS, [summed(b"%20d%20d%b" % forward, FORWARD) for forward in checkpoint.forwards])
    if checkpoint.notes:
        upto, at, devices = checkpoint.upto, checkpoint.at, marks(checkpoint.noted)
        first, *others = checkpoint.notes
        db.execute(_PUT_NOTE, (upto, at, devices, sum_note(upto, at, devices, first)))
        db.executemany(_PUT_PIECE, [(upto, nth, sum_piece(upto, nth, piece)) for nth, piece in enumerate(others, 1)])
    db.execute(_MOVE_POINTER, (checkpoint.upto, sum_meta(checkpoint.upto, identity)))


def _write_rows(db: apsw.Connection, rows: Iterable[Saving]) -> None:
    packed: dict[str, list[bytes]] = {}
    for kind, a, b, version, value in rows:
        if kind is Kept.STREAM:
            statement, row = (
                (DROP_STREAMS, b"%20d%20d" % (a, b))
                if value is None
                else (PUT_STREAMS, summed(b"%20d%20d%20d%b" % (a, b, version, value), kind))
            )
        elif kind in NUMBERED and not b:
            statement, row = (
                (DROP_NUMBERED[kind], b"%20d" % a)
                if value is None
                else (PUT_NUMBERED[kind], summed(b"%20d%20d%b" % (a, version, value), kind))
            )
        else:
            statement, row = (
                (DROP_ROWS, b"%20d%20d%20d" % (kind, a, b))
                if value is None
                else (PUT_ROWS, summed(b"%20d%20d%20d%20d%b" % (kind, a, b, version, value), kind))
            )
        packed.setdefault(statement, []).append(row)
    for statement, rows_of_one in packed.items():
        _give(db, statement, rows_of_one)


def _give(db: apsw.Connection, statement: str, packed: list[bytes]) -> None:
    if packed:
        packed.sort()  # padded digits sort like the keys: neighbours go into one page together
        db.execute(statement, (apsw.carray(tuple(packed)),))


def drop_notes(db: apsw.Connection, before: int, bytes_max: int) -> bool:
    """Drop up to `bytes_max` of blocks saved before this time, the last piece first. Returns whether there is more."""
    gone = 0
    while (upto := db.execute(READ_OLD_NOTE, (before,)).get) is not None:
        if gone >= bytes_max:
            return True
        # The note last: without it the other pieces could not be found.
        size = db.execute(DROP_PIECE, (upto,)).get
        if size is None:
            size = db.execute(DROP_NOTE, (upto,)).get
        assert isinstance(size, int), size
        gone += size
    return False


def marks(devices: Iterable[int]) -> bytes:
    """16 bits per device, sorted: enough to skip most blocks that do not name it."""
    hashed = array.array("H", sorted({(device * 0x9E3779B97F4A7C15 >> 48) & 0xFFFF for device in devices}))
    if sys.byteorder == "big":
        hashed.byteswap()
    return hashed.tobytes()
