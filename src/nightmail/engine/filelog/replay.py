"""Reading a log back: every offset once, in order, or Damaged.

Knows:   which segments hold which offsets, as the caller says.
Touches: nothing; it only reads.
Never:   skips an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from nightmail.engine.filelog.files import File, Files
from nightmail.engine.filelog.segment import name_of
from nightmail.engine.filelog.segment_reader import SegmentReader, read_head
from nightmail.engine.ports import Damaged, Stored, Unwritable


class UsedSegment(NamedTuple):
    """A segment with at least one durable batch; `start` is its first offset."""

    number: int
    start: int


def replay(files: Files, identity: bytes, used: Sequence[UsedSegment], after: int, last: int) -> Iterator[Stored]:
    """The batches with a record above `after`, up to `last`. Each segment ends where the next one starts."""
    for segment, limit in zip(used, [*(segment.start - 1 for segment in used[1:]), last], strict=True):
        if limit <= after:
            continue
        for stored in _read(files, identity, segment, limit):
            if stored.records and stored.last > after:
                yield stored


def _read(files: Files, identity: bytes, segment: UsedSegment, limit: int) -> Iterator[Stored]:
    """The batches of one segment up to `limit`. What follows is void."""
    with closing(open_segment(files, segment.number)) as file:
        head = read_head(file, segment.number, identity)
        if head is None:
            raise Damaged(f"{name_of(segment.number)} is damaged at byte 0: its header is gone")
        reader = SegmentReader(file, head, expected=segment.start)
        while reader.expected is None or reader.expected <= limit:
            batch = reader.next()
            if batch is None or batch.stored.last > limit:
                raise reader.damaged(limit)
            yield batch.stored


def open_segment(files: Files, number: int) -> File:
    try:
        return files.open(name_of(number))
    except FileNotFoundError as error:
        raise missing(number) from error
    except OSError as error:
        raise Unwritable(f"{name_of(number)} cannot be opened: {error}") from error


def missing(number: int) -> Damaged:
    return Damaged(f"{name_of(number)} is missing, and all its offsets with it")


def begins_late(segment: UsedSegment, after: int, unread: int | None = None) -> Damaged:
    """`unread`: an older segment in which no offset could be found."""
    lost = f"offsets from {after + 1} to {segment.start - 1} are missing"
    where = f", and nothing in {name_of(unread)} can be read" if unread is not None else ""
    return Damaged(f"{name_of(segment.number)} begins at offset {segment.start}: {lost}{where}")
