"""The migration of streams from schema 3: their answers become packed bytes.

Touches: a connection it is handed, inside the migration's transaction.
"""

from __future__ import annotations

import struct

import apsw
import msgspec
from msgspec import Struct

from nightmail.core import ring
from nightmail.core.state import BadRow, encode_row
from nightmail.engine.machine_errors import as_engine_error
from nightmail.model.answers import Accepted
from nightmail.model.forms import TAG_BYTES
from nightmail.model.rows import Kept, Numbers, RowKey, Stream

SOME = 1_000
"""Rows read at a time: a database may have more of them than memory."""

_READ = "SELECT id, a, b, value FROM stream WHERE id > ? ORDER BY id LIMIT ?"


class _Numbers(Struct, array_like=True):
    last: int
    low: int
    ring: dict[int, Accepted]


class _Stream(Struct, array_like=True):
    at: int
    lanes: tuple[_Numbers, _Numbers]


_decode = msgspec.msgpack.Decoder(_Stream).decode


def pack_streams(db: apsw.Connection) -> None:
    """Raises Damaged if a stream is not what was written."""
    done = 0
    some: list[tuple[int, int, int, bytes]]
    while some := db.execute(_READ, (done, SOME)).fetchall():  # pyright: ignore[reportAssignmentType]
        db.executemany(
            "UPDATE stream SET value = ? WHERE id = ?", ((packed(a, b, value), at) for at, a, b, value in some)
        )
        done = some[-1][0]


def packed(a: int, b: int, value: bytes) -> bytes:
    try:
        old = _decode(value)
        normal, high = map(_packed, old.lanes)
    except (ValueError, struct.error) as error:
        raise as_engine_error(BadRow(RowKey(Kept.STREAM, a, b))) from error
    return encode_row(Stream(old.at, (normal, high)))


def _packed(old: _Numbers) -> Numbers:
    numbers = Numbers(old.low - 1, old.low)
    for answer in old.ring.values():
        if len(answer.tag) > TAG_BYTES:
            raise ValueError("a tag is too long")
        ring.keep(numbers, answer)
    if numbers.last != old.last:
        raise ValueError("answers are missing, or too many")
    return numbers
