"""Reads one segment from front to back, and says how it ends.

Knows:   the bytes of one file.
Touches: nothing; it only reads.
Never:   decides what an end means for the log: that takes the other segments (`recovery.py`).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from nightmail.engine.filelog.files import File
from nightmail.engine.filelog.segment import (
    GRAIN,
    SECTOR,
    SegmentHead,
    batch_is_torn,
    decode_batch_head,
    decode_records,
    decode_segment_head,
    find_batch_head,
    head_is_torn,
    name_of,
)
from nightmail.engine.ports import Damaged, Stored

CHUNK = 1 << 20
_ZERO_GRAIN = bytes(GRAIN)
_ZERO_CHUNK = bytes(CHUNK)


class End(Enum):
    CLEAN = "clean"
    """Nothing was written here."""
    TORN = "torn"
    """A batch was begun here and never finished."""
    DAMAGED = "damaged"
    """These bytes are not as they were written."""


class Batch(NamedTuple):
    position: int
    raw: bytes
    stored: Stored


class SegmentReader:
    """The batches of one segment in order. When `next` is None, `end` says why."""

    def __init__(self, file: File, head: SegmentHead, expected: int | None = None) -> None:
        self.head = head
        self.position = SECTOR
        self.expected = expected
        """The offset that must come next; None: the first batch says."""
        self.end: End | None = None
        self._headless = False
        self._window = _Window(file, name_of(head.number))

    def next(self) -> Batch | None:
        if self.end is not None:
            return None
        batch = self._decode()
        if isinstance(batch, End):
            self.end = batch
            return None
        self.position += len(batch.raw)
        self.expected = batch.stored.last + 1
        return batch

    def _decode(self) -> Batch | End:
        at, salt = self.position, self.head.salt
        if at == self.head.size:
            return End.CLEAN
        raw = self._window.read(at, GRAIN)
        if raw == _ZERO_GRAIN:
            return End.CLEAN
        head = decode_batch_head(raw, salt)
        if head is None:
            self._headless = head_is_torn(raw)
            return End.TORN if self._headless else End.DAMAGED
        if at + head.span > self.head.size or (self.expected or head.first) != head.first:
            return End.DAMAGED
        whole = self._window.read(at, head.span)
        records = decode_records(head, whole, salt)
        if records is None:
            return End.TORN if batch_is_torn(head, at, whole) else End.DAMAGED
        return Batch(at, whole, Stored(head.first, head.at, records))

    def rest_is_zero(self) -> bool:
        """To be asked at the end: was nothing ever written from here on?

        Raises Damaged if a later batch shows that this is not the end but a hole: a batch is
        begun only when the one before it is durable.
        """
        at = self.position if self.end is End.CLEAN else self.position + GRAIN
        zero = True
        while at < self.head.size:
            chunk = self._window.fresh(at, min(CHUNK, self.head.size - at))
            if chunk != _ZERO_CHUNK[: len(chunk)]:
                zero = False
                if find_batch_head(chunk, self.head.salt) is not None:
                    raise self.damaged()
            at += len(chunk)
        if self._headless and not zero:
            # A write that stopped inside the header wrote nothing after it.
            raise self.damaged()
        return zero and self.end is End.CLEAN

    def damaged(self, upto: int | None = None) -> Damaged:
        """The sentence for the operator, if offsets up to `upto` should be here."""
        if self.expected is None and upto is None:
            lost = "all its offsets are unreadable"
        else:
            first = self.expected or "its first"
            lost = f"offsets from {first} {f'to {upto}' if upto else 'on'} are unreadable"
        return Damaged(f"{name_of(self.head.number)} is damaged at byte {self.position}: {lost}")


def read_head(file: File, number: int, identity: bytes) -> SegmentHead | None:
    """None for a file that never became a segment. Raises Damaged or TooNew."""
    window = _Window(file, name_of(number))
    size = window.size()
    head = decode_segment_head(window.fresh(0, min(SECTOR, size)), number, identity, size)
    if head is None:
        at = SECTOR
        while at < size:
            chunk = window.fresh(at, min(CHUNK, size - at))
            if chunk != _ZERO_CHUNK[: len(chunk)]:
                # A segment takes batches only when its header is durable.
                raise Damaged(f"{name_of(number)} is damaged at byte 0: it holds batches but its header is gone")
            at += len(chunk)
    return head


class _Window:
    """A part of a file in memory; it moves forward when a read goes beyond it."""

    def __init__(self, file: File, name: str) -> None:
        self._file, self._name = file, name
        self._from, self._data = 0, b""

    def read(self, at: int, size: int) -> bytes:
        begin = at - self._from
        if begin < 0 or begin + size > len(self._data):
            self._from, self._data, begin = at, self._read(at, max(size, CHUNK)), 0
            if len(self._data) < size:
                raise self._short(at + len(self._data))
        return self._data[begin : begin + size]

    def fresh(self, at: int, size: int) -> bytes:
        data = self._read(at, size)
        if len(data) != size:
            raise self._short(at + len(data))
        return data

    def size(self) -> int:
        try:
            return self._file.size()
        except OSError as error:
            raise Damaged(f"{self._name} cannot be read: {error}") from error

    def _read(self, at: int, size: int) -> bytes:
        try:
            return self._file.read(at, size)
        except OSError as error:
            raise Damaged(f"{self._name} cannot be read at byte {at}: {error}") from error

    def _short(self, at: int) -> Damaged:
        return Damaged(f"{self._name} cannot be read at byte {at}: the file ends there")
