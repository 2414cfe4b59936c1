"""Each stored row, entry and forward ends with a checksum over its key, its version and its bytes.

So a row that changed, or is found under the key of another one, is noticed when it is read, and is named.

Knows:   how keys are written out for that, in the same form in which `statements.py` hands them to SQLite.
Touches: a connection it is handed, inside the migration's transaction.

A CRC-32 behind what it covers makes the CRC-32 of the whole a constant: checking takes one call.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import apsw

from nightmail.model.rows import Kept, RowKey

from .page_sums import RESIDUE

SUM_BYTES = 4
ENTRY, NOTE, PIECE, META, FORWARD = 0x101, 0x102, 0x103, 0x104, 0x105
"""What a checksum starts from, beside the kinds of rows: nothing passes for something of another table."""


def summed(packed: bytes, kind: int) -> bytes:
    """A packed key and value, followed by their checksum."""
    return packed + zlib.crc32(packed, kind).to_bytes(SUM_BYTES, "little")


def row_is_whole(key: RowKey, version: int, stored: bytes) -> bool:
    kind, a, b = key
    if kind is Kept.STREAM:
        packed = b"%20d%20d%20d%b" % (a, b, version, stored)
    elif b or kind not in _NUMBERED:
        packed = b"%20d%20d%20d%20d%b" % (kind, a, b, version, stored)
    else:
        packed = b"%20d%20d%b" % (a, version, stored)
    return zlib.crc32(packed, kind) == RESIDUE


def entry_is_whole(queue: int, seq: int, stored: bytes) -> bool:
    return zlib.crc32(b"%20d%20d%b" % (queue, seq, stored), ENTRY) == RESIDUE


def forward_is_whole(shard: int, k: int, stored: bytes) -> bool:
    return zlib.crc32(b"%20d%20d%b" % (shard, k, stored), FORWARD) == RESIDUE


def note_is_whole(upto: int, at: int, devices: bytes, stored: bytes) -> bool:
    return zlib.crc32(b"%20d%20d%b%b" % (upto, at, devices, stored), NOTE) == RESIDUE


def piece_is_whole(upto: int, nth: int, stored: bytes) -> bool:
    return zlib.crc32(b"%20d%20d%b" % (upto, nth, stored), PIECE) == RESIDUE


def sum_note(upto: int, at: int, devices: bytes, lines: bytes) -> bytes:
    return lines + _sum(b"%20d%20d%b%b" % (upto, at, devices, lines), NOTE)


def sum_piece(upto: int, nth: int, lines: bytes) -> bytes:
    return lines + _sum(b"%20d%20d%b" % (upto, nth, lines), PIECE)


def sum_meta(pointer: int, identity: bytes) -> int:
    return zlib.crc32(b"%20d%b" % (pointer, identity), META)


_NUMBERED = frozenset((Kept.ACCOUNT, Kept.MAILBOX, Kept.RECEIPTS, Kept.KEYS))


def _sum(packed: bytes, kind: int) -> bytes:
    return zlib.crc32(packed, kind).to_bytes(SUM_BYTES, "little")


# --- the migration ----------------------------------------------------------------------------

_STATEMENTS = """
UPDATE account SET value = summed_numbered(1, a, version, value);
UPDATE mailbox SET value = summed_numbered(3, a, version, value);
UPDATE changes SET value = summed_numbered(4, a, version, value);
UPDATE keys SET value = summed_numbered(8, a, version, value);
UPDATE stream SET value = summed_stream(a, b, version, value);
UPDATE row SET value = summed_row(kind, a, b, version, value);
UPDATE entry SET body = summed_entry(queue, seq, body);
UPDATE forward SET record = summed_forward(shard, k, record);
UPDATE note SET lines = summed_note(upto, at, devices, lines);
UPDATE piece SET lines = summed_piece(upto, nth, lines);
INSERT INTO meta VALUES ('sum', 0);
"""


def add_sums(db: apsw.Connection) -> None:
    """Give every row, entry, forward and note its checksum. The sum of `meta` follows when the identity is there."""

    def numbered(kind: int, a: int, version: int, value: bytes) -> bytes:
        return value + _sum(b"%20d%20d%b" % (a, version, value), kind)

    def stream(a: int, b: int, version: int, value: bytes) -> bytes:
        return value + _sum(b"%20d%20d%20d%b" % (a, b, version, value), Kept.STREAM)

    def row(kind: int, a: int, b: int, version: int, value: bytes) -> bytes:
        return value + _sum(b"%20d%20d%20d%20d%b" % (kind, a, b, version, value), kind)

    def entry(queue: int, seq: int, body: bytes) -> bytes:
        return body + _sum(b"%20d%20d%b" % (queue, seq, body), ENTRY)

    def forward(shard: int, k: int, record: bytes) -> bytes:
        return record + _sum(b"%20d%20d%b" % (shard, k, record), FORWARD)

    functions: dict[str, Callable[..., bytes]] = {
        "summed_numbered": numbered, "summed_stream": stream, "summed_row": row, "summed_entry": entry,
        "summed_forward": forward, "summed_note": sum_note, "summed_piece": sum_piece,
    }  # fmt: skip
    for name, function in functions.items():
        db.create_scalar_function(name, function, deterministic=True)
    try:
        db.execute(_STATEMENTS)
    finally:
        for name in functions:
            db.create_scalar_function(name, None)
