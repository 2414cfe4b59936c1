"""Opening a log: judge every segment first, then, and only then, touch the disk.

Segments are read from the newest to the oldest, as far back as the checkpoint needs. A segment
whose first batch begins with offset s makes void whatever stands at s or above in older ones:
that is how a log goes on after a write whose outcome nobody knows. So the question is never
whether each byte is good, but whether every offset from the checkpoint to the end can be read:

    7: … 41 42 43?        43 failed: written or not, nobody knows
    8: 43? 44?            so did these, in a second try
    9: 43 44 45 …         these are the real ones

The last segment with a batch is read to its end here; older ones are verified by `replay`.

Knows:   what power cuts and failed writes leave behind, and what they cannot.
Touches: after the verdict: the last batch and the spare's header, both with the bytes they have.
Never:   changes anything in a log that it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from nightmail.engine.filelog.files import File, Files
from nightmail.engine.filelog.replay import Piece, begins_late, missing, open_segment
from nightmail.engine.filelog.segment import SECTOR, SegmentHead, encode_segment_head, name_of, number_of
from nightmail.engine.filelog.walk import Batch, End, Walk, read_head
from nightmail.engine.ports import Damaged, Unwritable


@dataclass(slots=True)
class Taking:
    """An open segment that takes batches, the next one at `position`."""

    file: File
    head: SegmentHead
    position: int = SECTOR

    def fits(self, span: int) -> bool:
        return self.position + span <= self.head.size


@dataclass(slots=True)
class Recovered:
    """What a log folder holds."""

    numbers: list[int]
    """Every segment file, oldest first, also those no longer needed."""
    next_number: int
    pieces: list[Piece] = field(default_factory=list[Piece])
    """Those needed for reading, oldest first."""
    last: int = 0
    since: int | None = None
    """When the oldest record in the last piece, or void after it, was to be accepted."""
    current: Taking | None = None
    spare: Taking | None = None


@dataclass(slots=True)
class _Verdict:
    found: Recovered
    tail: SegmentHead | None = None
    final: Batch | None = None
    """The last batch of all."""
    goes_on: int | None = None
    """Where the tail can take its next batch, if it can."""
    unused: SegmentHead | None = None
    """The newest segment in which nothing was written but its header."""
    unread: int | None = None
    """The oldest segment looked at that could not be read, or in which nothing counts."""


def recover(files: Files, identity: bytes, after: int, segment_bytes: int) -> Recovered:
    """Read the log as far as it is needed by a checkpoint at `after`. Raises Damaged, TooNew or Unwritable."""
    verdict = _judge(files, identity, after)
    found = verdict.found
    try:
        _settle(files, verdict, segment_bytes)
    except OSError as error:
        for taking in (found.current, found.spare):
            if taking is not None:
                close_quietly(taking.file)
        assert verdict.tail is not None
        raise Unwritable(f"{name_of(verdict.tail.number)} cannot be written: {error}") from error
    return found


def create_segment(files: Files, head: SegmentHead) -> Taking:
    """A new segment, its header durable. Raises OSError."""
    name = name_of(head.number)
    if name in files.names():
        # From an attempt that failed or was cut short: nothing was ever appended to it.
        files.remove(name)
    file = files.create(name, head.size)
    try:
        file.write(0, encode_segment_head(head))
        file.sync()
    except OSError:
        close_quietly(file)
        raise
    return Taking(file, head)


def remove_segments(files: Files, numbers: Sequence[int]) -> list[int]:
    """Those that could not be removed."""
    left: list[int] = []
    for number in numbers:
        try:
            files.remove(name_of(number))
        except FileNotFoundError:
            pass
        except OSError:
            left.append(number)
    return left


def close_quietly(file: File) -> None:
    with suppress(OSError):
        file.close()


# --- the verdict ------------------------------------------------------------------------------


def _judge(files: Files, identity: bytes, after: int) -> _Verdict:
    try:
        numbers = sorted(number for name in files.names() if (number := number_of(name)) is not None)
    except OSError as error:
        raise Unwritable(f"the log's folder cannot be read: {error}") from error
    verdict = _Verdict(Recovered(numbers, numbers[-1] + 1 if numbers else 1))
    found = verdict.found
    for number, newer in zip(reversed(numbers), [None, *reversed(numbers)], strict=False):
        if newer is not None and number + 1 != newer:
            raise missing(newer - 1)
        with closing(open_segment(files, number)) as file:
            head = read_head(file, number, identity)
            if head is None:
                # The next one is created only when this one's header is durable.
                if newer is not None:
                    raise Damaged(f"{name_of(number)} is damaged at byte 0: its header is gone")
                found.next_number = number
            elif not found.pieces:
                _judge_end(verdict, file, head)
            elif (start := _start(file, head, before=found.pieces[0].start)) is not None:
                found.pieces.insert(0, Piece(number, start))
            else:
                verdict.unread = number
        if found.pieces and found.pieces[0].start <= after + 1:
            # Older ones hold nothing that is needed. Some may be files that were removed and
            # came back with a power cut, in any order: they are not even looked at.
            break
    _check_reach(found, after, verdict.unread)
    return verdict


def _judge_end(verdict: _Verdict, file: File, head: SegmentHead) -> None:
    """No newer segment holds a batch: is this one the end of the log, and where does it end?"""
    found, walk = verdict.found, Walk(file, head)
    while (batch := walk.next()) is not None:
        if not found.pieces:
            found.pieces.append(Piece(head.number, batch.stored.first))
        if found.since is None and batch.stored.records:
            found.since = batch.stored.at
        verdict.final, found.last = batch, batch.stored.last
    if walk.end is End.DAMAGED:
        raise walk.damaged()
    untouched = walk.rest_is_zero()
    if not untouched and found.since is None:
        # What an unfinished batch left is as old as can be: it goes with the next trim.
        found.since = 0
    if found.pieces:
        verdict.tail = head
        # Never over the remains of a torn batch: a later tear would mix with them and look like
        # damage. The next append then goes to a new segment, which starts after `last`.
        verdict.goes_on = walk.position if untouched else None
    elif untouched and verdict.unused is None:
        verdict.unused = head


def _start(file: File, head: SegmentHead, before: int) -> int | None:
    """The first offset of an older segment; None if nothing in it counts.

    If it cannot be read, its offsets are missing from the rest, and `replay` will say so.
    """
    batch = Walk(file, head).next()
    return batch.stored.first if batch is not None and batch.stored.first < before else None


def _check_reach(found: Recovered, after: int, unread: int | None) -> None:
    if not found.pieces and found.numbers and found.numbers[0] != 1:
        # The newest batch is never removed: where none is left, none ever was.
        raise missing(found.numbers[0] - 1)
    if found.last < after:
        raise Damaged(f"the log ends at offset {found.last}, but the checkpoint is at {after}: segments are missing")
    if found.pieces and found.pieces[0].start > after + 1:
        raise begins_late(found.pieces[0], after, unread)


# --- after the verdict ------------------------------------------------------------------------


def _settle(files: Files, verdict: _Verdict, segment_bytes: int) -> None:
    found = verdict.found
    if verdict.tail is not None and verdict.final is not None:
        tail = Taking(files.open(name_of(verdict.tail.number)), verdict.tail, verdict.goes_on or 0)
        try:
            # Every batch but the last was synced before the next was begun. The last may be
            # only in memory, and after a failed sync the system takes such pages for clean: only
            # writing the same bytes again makes this sync mean something.
            tail.file.write(verdict.final.position, verdict.final.raw)
            tail.file.sync()
        except OSError:
            close_quietly(tail.file)
            raise
        if verdict.goes_on is None:
            close_quietly(tail.file)
        else:
            found.current = tail
    if verdict.unused is not None and verdict.unused.size == segment_bytes:
        found.spare = _reuse(files, verdict.unused)


def _reuse(files: Files, head: SegmentHead) -> Taking | None:
    """A spare that was left. If it cannot be used, another one will be made."""
    try:
        file = files.open(name_of(head.number))
    except OSError:
        return None
    try:
        file.write(0, encode_segment_head(head))
        file.sync()
    except OSError:
        close_quietly(file)
        return None
    return Taking(file, head)
