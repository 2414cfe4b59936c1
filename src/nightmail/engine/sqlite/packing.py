"""Streams as they were stored until schema 3, turned into what they are now: their answers are packed.

Touches: a connection it is handed, inside the migration's transaction.
"""

from __future__ import annotations

from typing import cast

import apsw
import msgspec
from msgspec import Struct

from nightmail.core import ring
from nightmail.core.state import encode_row
from nightmail.model.answers import Accepted
from nightmail.model.rows import Numbers, Stream

SOME = 1_000
"""Rows read at a time: a database may have more of them than memory."""


class _Numbers(Struct, array_like=True):
    last: int
    low: int
    ring: dict[int, Accepted]


class _Stream(Struct, array_like=True):
    at: int
    lanes: tuple[_Numbers, _Numbers]


_decode = msgspec.msgpack.Decoder(_Stream).decode


def pack_streams(db: apsw.Connection) -> None:
    done = 0
    while some := db.execute("SELECT id, value FROM stream WHERE id > ? ORDER BY id LIMIT ?", (done, SOME)).fetchall():
        rows = cast("list[tuple[int, bytes]]", some)
        db.executemany("UPDATE stream SET value = ? WHERE id = ?", ((packed(value), at) for at, value in rows))
        done = rows[-1][0]


def packed(value: bytes) -> bytes:
    old = _decode(value)
    normal, high = map(_packed, old.lanes)
    return encode_row(Stream(old.at, (normal, high)))


def _packed(old: _Numbers) -> Numbers:
    numbers = Numbers(old.low - 1, old.low)
    for answer in old.ring.values():
        ring.keep(numbers, answer)
    assert numbers.last == old.last
    return numbers
