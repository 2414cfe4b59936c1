"""The bytes of one log segment: a header sector, then batches, then zeros to the end.

    segment   magic, version, identity of the data folder, number, salt, size, …, crc, FF      512 bytes
    batch     header: magic, length, first, at, records, blank, crc of the rest, …, crc, FF  64 bytes
              records: u32 length and bytes, each
              FF to the next multiple of 64, at least one

A batch starts on a multiple of 64, so its header lies in one sector, and a disk writes a sector
whole or not at all. Every bit is under a checksum; those of batches start from the segment's
secret salt, so that nobody can send a ciphertext that looks like a batch. Everything written
ends in FF: where it ends in zero, the write was interrupted.

Knows:   the format, and how a batch that was never written whole differs from a damaged one.
Touches: nothing.
Never:   reads a file, a clock or randomness.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from nightmail.engine.ports import RECORD_OVERHEAD, Damaged, TooNew

VERSION = 1
SECTOR = 512
GRAIN = 64

_SEGMENT_MAGIC = b"NIGHTLOG"
_BATCH_MAGIC = b"NMB\x01"
_SEGMENT = struct.Struct(">8sI8sIIQ")
_BATCH = struct.Struct(">4sIQQIII")
_CRC = struct.Struct(">I")
_END = b"\xff"
_NAME = re.compile(r"log-(\d{8})\.seg", re.ASCII)
_ZERO_SECTOR = bytes(SECTOR)


def name_of(number: int) -> str:
    return f"log-{number:08d}.seg"


def number_of(name: str) -> int | None:
    """The segment's number; None if this is not a segment's name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


class SegmentHead(NamedTuple):
    identity: bytes
    number: int
    salt: int
    size: int


def encode_segment_head(head: SegmentHead) -> bytes:
    assert len(head.identity) == 8
    fields = _SEGMENT.pack(_SEGMENT_MAGIC, VERSION, head.identity, head.number, head.salt, head.size)
    sector = fields.ljust(SECTOR - _CRC.size - 1, b"\0")
    return sector + _CRC.pack(zlib.crc32(sector)) + _END


def decode_segment_head(sector: bytes, number: int, identity: bytes, size: int) -> SegmentHead | None:
    """The header of segment `number`, a file of `size` bytes. None: it was never written to its end."""
    name = name_of(number)
    if not any(sector) or (len(sector) == SECTOR and sector[-1] == 0):
        return None
    covered = SECTOR - _CRC.size - 1
    if sector[covered:] != _CRC.pack(zlib.crc32(sector[:covered])) + _END:
        raise Damaged(f"{name} is damaged at byte 0: its header is unreadable, and so are all its offsets")
    magic, version, of, its_number, salt, its_size = _SEGMENT.unpack_from(sector)
    if magic != _SEGMENT_MAGIC:
        raise Damaged(f"{name} is not a log segment: its header begins with {magic!r}")
    if version > VERSION:
        # Later versions keep the checksum where it is: a flipped bit is never taken for progress.
        raise TooNew(f"{name} has format {version}, this Nightmail reads up to {VERSION}: start a newer one")
    if of != identity:
        raise Damaged(f"{name} is foreign: it belongs to data folder {of.hex()}, this one is {identity.hex()}")
    if its_number != number:
        raise Damaged(f"{name} is misnamed: its header says it is {name_of(its_number)}")
    if its_size != size:
        raise Damaged(f"{name} is {'truncated' if size < its_size else 'too long'}: {size} bytes of {its_size}")
    return SegmentHead(of, number, salt, its_size)


class BatchHead(NamedTuple):
    length: int
    first: int
    at: int
    records: int
    blank: int
    """How many whole sectors of the batch are zero because its records are."""
    crc: int

    @property
    def last(self) -> int:
        return self.first + self.records - 1

    @property
    def span(self) -> int:
        return span_of(self.length)


def length_of(records: Sequence[bytes]) -> int:
    return sum(map(len, records)) + RECORD_OVERHEAD * len(records)


def span_of(length: int) -> int:
    """All bytes of a batch whose records take `length`: header and padding too."""
    return GRAIN + length + GRAIN - length % GRAIN


def encode_batch(salt: int, position: int, first: int, at: int, records: Sequence[bytes]) -> bytes:
    """A batch to be written at `position`. Without records it only says that the log continues at `first`."""
    parts: list[bytes] = []
    for record in records:
        parts.append(_CRC.pack(len(record)))
        parts.append(record)
    length = length_of(records)
    parts.append(_END * (GRAIN - length % GRAIN))
    rest = b"".join(parts)
    crc = zlib.crc32(rest, salt)
    fields = _BATCH.pack(_BATCH_MAGIC, length, first, at, len(records), _blank_sectors(position + GRAIN, rest), crc)
    head = fields.ljust(GRAIN - _CRC.size - 1, b"\0")
    return b"".join((head, _CRC.pack(zlib.crc32(head, salt)), _END, rest))


def decode_batch_head(raw: bytes, salt: int) -> BatchHead | None:
    """None if this is not a batch header of this segment."""
    if len(raw) != GRAIN or not raw.startswith(_BATCH_MAGIC) or raw[-1:] != _END:
        return None
    (crc,) = _CRC.unpack_from(raw, GRAIN - _CRC.size - 1)
    if crc != zlib.crc32(raw[: GRAIN - _CRC.size - 1], salt):
        return None
    return BatchHead(*_BATCH.unpack_from(raw)[1:])


def decode_records(head: BatchHead, batch: bytes, salt: int) -> list[bytes] | None:
    """The records of a whole batch; None if it is not as it was written."""
    rest = memoryview(batch)[GRAIN:]
    if len(batch) != head.span or zlib.crc32(rest, salt) != head.crc:
        return None
    records: list[bytes] = []
    at, end = 0, head.length
    while at + RECORD_OVERHEAD <= end and len(records) < head.records:
        (size,) = _CRC.unpack_from(rest, at)
        at += RECORD_OVERHEAD
        records.append(bytes(rest[at : at + size]))
        at += size
    return records if at == end and len(records) == head.records else None


def batch_is_torn(head: BatchHead, position: int, batch: bytes) -> bool:
    """Whether an unreadable batch was never written completely, instead of changed afterwards.

    True if its end or one of its sectors is still zero and should not be.
    """
    return batch[-1] == 0 or _blank_sectors(position + GRAIN, batch[GRAIN:]) > head.blank


def head_is_torn(raw: bytes) -> bool:
    """Whether the write of an unreadable batch header stopped inside it."""
    return raw[-1] == 0


def find_batch_head(chunk: bytes, salt: int) -> int | None:
    """Where in `chunk`, which begins on a multiple of 64, a batch of this segment begins."""
    at = chunk.find(_BATCH_MAGIC)
    while at >= 0:
        if at % GRAIN == 0 and decode_batch_head(chunk[at : at + GRAIN], salt):
            return at
        at = chunk.find(_BATCH_MAGIC, at + 1)
    return None


def _blank_sectors(position: int, data: bytes) -> int:
    if _ZERO_SECTOR not in data:
        return 0
    starts = range(-position % SECTOR, len(data) - SECTOR + 1, SECTOR)
    return sum(data[at : at + SECTOR] == _ZERO_SECTOR for at in starts)
