"""Reading a log back: every offset once, in order, or a refusal.

Knows:   which segments hold what, as it is told.
Touches: nothing; it only reads.
Never:   skips an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from nightmail.engine.filelog.files import File, Files
from nightmail.engine.filelog.segment import name_of
from nightmail.engine.filelog.walk import Walk, read_head
from nightmail.engine.ports import Damaged, Stored, Unwritable


class Piece(NamedTuple):
    """A segment with at least one durable batch; `start` is its first offset."""

    number: int
    start: int


def replay(files: Files, identity: bytes, pieces: Sequence[Piece], after: int, last: int) -> Iterator[Stored]:
    """The batches with a record above `after`, up to `last`. Each piece ends where the next one starts."""
    for piece, limit in zip(pieces, [*(piece.start - 1 for piece in pieces[1:]), last], strict=True):
        if limit <= after:
            continue
        for stored in _read(files, identity, piece, limit):
            if stored.records and stored.last > after:
                yield stored


def _read(files: Files, identity: bytes, piece: Piece, limit: int) -> Iterator[Stored]:
    """The batches of one segment up to `limit`. What stands beyond is void."""
    with closing(open_segment(files, piece.number)) as file:
        head = read_head(file, piece.number, identity)
        if head is None:
            raise Damaged(f"{name_of(piece.number)} is damaged at byte 0: its header is gone")
        walk = Walk(file, head, expected=piece.start)
        while walk.expected is None or walk.expected <= limit:
            batch = walk.next()
            if batch is None or batch.stored.last > limit:
                raise walk.damaged(limit)
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


def begins_late(piece: Piece, after: int, unread: int | None = None) -> Damaged:
    """`unread`: an older segment in which no offset could be found."""
    lost = f"offsets from {after + 1} to {piece.start - 1} are missing"
    where = f", and nothing in {name_of(unread)} can be read" if unread is not None else ""
    return Damaged(f"{name_of(piece.number)} begins at offset {piece.start}: {lost}{where}")
