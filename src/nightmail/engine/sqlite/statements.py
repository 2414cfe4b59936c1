"""The statements of a checkpoint, and the form in which it is handed to them.

Knows:   the tables.
Touches: the connection it is handed, inside the caller's transaction.

Each table gets one statement per checkpoint, fed by carray: SQLite then runs it whole without
asking for Python's lock, so a busy loop beside it is not stopped row by row. A carray is one
column, so a row's numbers travel as fixed-width digits in front of its bytes.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterable

import apsw

from nightmail.engine.ports import Checkpoint

# A number at each place of a packed key.
_1 = "CAST(substr(value, 1, 20) AS INTEGER)"
_2 = "CAST(substr(value, 21, 20) AS INTEGER)"
_3 = "CAST(substr(value, 41, 20) AS INTEGER)"
_4 = "CAST(substr(value, 61, 20) AS INTEGER)"

# ruff: noqa: S608 (nothing but the four constants above is put into a statement)
_PUT_ROWS = f"INSERT OR REPLACE INTO row SELECT {_1}, {_2}, {_3}, {_4}, substr(value, 81) FROM carray(?)"
_DROP_ROWS = f"DELETE FROM row WHERE (kind, a, b) IN (SELECT {_1}, {_2}, {_3} FROM carray(?))"
_PUT_ENTRIES = f"INSERT OR REPLACE INTO entry SELECT {_1}, {_2}, substr(value, 41) FROM carray(?)"
_CLEAR_ENTRIES = f"""
    DELETE FROM entry WHERE (queue, seq) IN (
        -- CROSS JOIN keeps the order: for each queue given, its entries by the primary key.
        SELECT e.queue, e.seq FROM carray(?) CROSS JOIN entry e ON e.queue = {_1} AND e.seq <= {_2}
    )"""
_DROP_ENTRIES = f"DELETE FROM entry WHERE (queue, seq) IN (SELECT {_1}, {_2} FROM carray(?))"
_PUT_NOTE = "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?)"
_MOVE_POINTER = "UPDATE meta SET value = ? WHERE key = 'pointer'"

DROP_NOTES = "DELETE FROM note WHERE upto IN (SELECT upto FROM note WHERE at < ? ORDER BY at LIMIT ?)"
READ_ROW = "SELECT value FROM row WHERE kind = ? AND a = ? AND b = ?"
READ_RANGE = "SELECT seq, body FROM entry WHERE queue = ? AND seq BETWEEN ? AND ? ORDER BY seq"
READ_FIRST_NOTE = "SELECT upto FROM note WHERE at >= ? ORDER BY at, upto LIMIT 1"
READ_NOTES = "SELECT upto, lines FROM note WHERE upto >= ? AND at >= ? AND instr(devices, ?) ORDER BY upto LIMIT 16"


def write(db: apsw.Connection, checkpoint: Checkpoint) -> None:
    put = [
        b"%20d%20d%20d%20d%b" % (*row.key, row.version, row.value) for row in checkpoint.rows if row.value is not None
    ]
    gone = [b"%20d%20d%20d" % row.key for row in checkpoint.rows if row.value is None]
    _give(db, _PUT_ROWS, put)
    _give(db, _DROP_ROWS, gone)
    _give(db, _PUT_ENTRIES, [b"%20d%20d%b" % entry for entry in checkpoint.entries])
    _give(db, _CLEAR_ENTRIES, [b"%20d%20d" % pair for pair in checkpoint.cleared])
    _give(db, _DROP_ENTRIES, [b"%20d%20d" % pair for pair in checkpoint.dropped])
    if checkpoint.notes:
        db.execute(_PUT_NOTE, (checkpoint.upto, checkpoint.at, marks(checkpoint.noted), checkpoint.notes))
    db.execute(_MOVE_POINTER, (checkpoint.upto,))


def _give(db: apsw.Connection, statement: str, packed: list[bytes]) -> None:
    if packed:
        packed.sort()  # padded digits sort like the keys: neighbours go into one page together
        db.execute(statement, (apsw.carray(tuple(packed)),))


def marks(devices: Iterable[int]) -> bytes:
    """16 bits per device, sorted: enough to pass over a block that does not speak of it."""
    hashed = array.array("H", sorted({(device * 0x9E3779B97F4A7C15 >> 48) & 0xFFFF for device in devices}))
    if sys.byteorder == "big":
        hashed.byteswap()
    return hashed.tobytes()
