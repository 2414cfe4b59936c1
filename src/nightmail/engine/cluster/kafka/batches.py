"""One append as one Kafka message, and the offsets of its records.

Knows:   the form of a message, and how offsets follow from Kafka's.
Never:   builds on a message that is not of this form: the topic is ours alone.

    1 byte    version
    8 bytes   at, in milliseconds since 1970
    2 bytes   how many records
    4 bytes   for each record: its length
              the records

Kafka numbers messages from 0, without holes. The records of message m have the offsets m × SPAN + 1, m × SPAN + 2, …,
and the batch ends at (m + 1) × SPAN: nothing but the offset itself is needed to find the message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from nightmail.engine.ports import Damaged, Stored

SPAN = 4_096
VERSION = 1
_HEAD = struct.Struct("<BqH")
HEAD_BYTES = _HEAD.size


def pack(at: int, records: Sequence[bytes]) -> bytes:
    assert 0 < len(records) <= SPAN
    lengths = struct.pack(f"<{len(records)}I", *map(len, records))
    return b"".join((_HEAD.pack(VERSION, at, len(records)), lengths, *records))


def unpack(message: int, value: bytes) -> Stored:
    """Raises Damaged."""
    try:
        version, at, count = _HEAD.unpack_from(value)
        lengths = struct.unpack_from(f"<{count}I", value, HEAD_BYTES)
    except struct.error:
        raise Damaged(f"message {message} of the log is not one of Nightmail's") from None
    start = HEAD_BYTES + 4 * count
    if version != VERSION or not 0 < count <= SPAN or start + sum(lengths) != len(value):
        raise Damaged(f"message {message} of the log is not one of Nightmail's, or of a newer version's")
    records: list[bytes] = []
    for length in lengths:
        records.append(value[start : start + length])
        start += length
    return Stored(first_of(message), at, records, SPAN)


def first_of(message: int) -> int:
    """The offset of a message's first record."""
    return message * SPAN + 1


def message_after(end: int) -> int:
    """The message that begins behind the end of a batch; of the first one for 0."""
    return end // SPAN
