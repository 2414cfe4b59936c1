"""Opening a log: judge every segment first, and write to the disk only after that.

Segments are read from the newest to the oldest, as far back as the checkpoint needs. A segment
whose first batch begins with offset s voids every offset from s on in older segments: so a log
continues after a write whose outcome is unknown. The question is never whether each byte is
good, but whether every offset from the checkpoint to the end can be read:

    7: … 41 42 43?        43 failed: written or not, that is unknown
    8: 43? 44?            so did these, in a second attempt
    9: 43 44 45 …         these count

The last segment with a batch is read to its end here; older ones are verified by `replay`.

Knows:   what power cuts and failed writes leave behind, and what they cannot.
Touches: after the verdict: the last batch and the spare's header, both with the bytes that they hold.
Never:   changes anything in a log that it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from nightmail.engine.filelog.files import File, Files
from nightmail.engine.filelog.replay import UsedSegment, begins_late, missing, open_segment
from nightmail.engine.filelog.segment import SECTOR, SegmentHead, encode_segment_head, name_of, number_of
from nightmail.engine.filelog.segment_reader import Batch, End, SegmentReader, read_head
from nightmail.engine.ports import Damaged, Unwritable


@dataclass(slots=True)
class OpenSegment:
    """A segment that takes batches, the next one at `position`."""

    file: File
    head: SegmentHead
    position: int = SECTOR

    def fits(self, span: int) -> bool:
        return self.position + span <= self.head.size


@dataclass(slots=True)
class Recovered:
    """What a log folder holds."""

    numbers: list[int]
    """Every segment file, oldest first, including those that nothing needs."""
    next_number: int
    used: list[UsedSegment] = field(default_factory=list[UsedSegment])
    """The segments needed for reading, oldest first."""
    last: int = 0
    since: int | None = None
    """When the oldest record in the last used segment, or void after it, was to be accepted."""
    current: OpenSegment | None = None
    spare: OpenSegment | None = None


@dataclass(slots=True)
class LogVerdict:
    found: Recovered
    tail: SegmentHead | None = None
    final: Batch | None = None
    """The last batch of all."""
    continue_at: int | None = None
    """Where the tail takes its next batch, if it can take one."""
    unused: SegmentHead | None = None
    """The newest segment in which only the header was written."""
    unread: int | None = None
    """The oldest segment checked that could not be read, or in which nothing counts."""


def recover(files: Files, identity: bytes, after: int, segment_bytes: int) -> Recovered:
    """Read the log as far as a checkpoint at `after` needs it. Raises Damaged, TooNew or Unwritable."""
    verdict = judge(files, identity, after)
    found = verdict.found
    try:
        _settle(files, verdict, segment_bytes)
    except OSError as error:
        for opened in (found.current, found.spare):
            if opened is not None:
                close_quietly(opened.file)
        assert verdict.tail is not None
        raise Unwritable(f"{name_of(verdict.tail.number)} cannot be written: {error}") from error
    return found


def create_segment(files: Files, head: SegmentHead) -> OpenSegment:
    """A new segment, its header durable. Raises OSError."""
    name = name_of(head.number)
    if name in files.names():
        # From an attempt that failed or was interrupted: nothing was ever appended to it.
        files.remove(name)
    file = files.create(name, head.size)
    try:
        file.write(0, encode_segment_head(head))
        file.sync()
    except OSError:
        close_quietly(file)
        raise
    return OpenSegment(file, head)


def remove_segments(files: Files, numbers: Sequence[int]) -> list[int]:
    """Returns those that could not be removed."""
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


def judge(files: Files, identity: bytes, after: int) -> LogVerdict:
    """What the log holds, as far as a checkpoint at `after` needs it. Reads only; raises like `recover`."""
    try:
        numbers = sorted(number for name in files.names() if (number := number_of(name)) is not None)
    except OSError as error:
        raise Unwritable(f"the log's folder cannot be read: {error}") from error
    verdict = LogVerdict(Recovered(numbers, numbers[-1] + 1 if numbers else 1))
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
            elif not found.used:
                _judge_end(verdict, file, head)
            elif (start := _start(file, head, before=found.used[0].start)) is not None:
                found.used.insert(0, UsedSegment(number, start))
            else:
                verdict.unread = number
        if found.used and found.used[0].start <= after + 1:
            # Older ones hold nothing that is needed. Some may be files that were removed and reappeared
            # after a power cut, in any order: they are not even opened.
            break
    _check_reach(found, after, verdict.unread)
    return verdict


def _judge_end(verdict: LogVerdict, file: File, head: SegmentHead) -> None:
    """No newer segment holds a batch: is this one the end of the log, and where does it end?"""
    found, reader = verdict.found, SegmentReader(file, head)
    while (batch := reader.next()) is not None:
        if not found.used:
            found.used.append(UsedSegment(head.number, batch.stored.first))
        if found.since is None and batch.stored.records:
            found.since = batch.stored.at
        verdict.final, found.last = batch, batch.stored.last
    if reader.end is End.DAMAGED:
        raise reader.damaged()
    untouched = reader.rest_is_zero()
    if not untouched and found.since is None:
        # The remains of an unfinished batch count as very old: the next trim removes them.
        found.since = 0
    if found.used:
        verdict.tail = head
        # Never over the remains of a torn batch: a later torn batch would mix with them and look like
        # damage. The next append then goes to a new segment, which starts after `last`.
        verdict.continue_at = reader.position if untouched else None
    elif untouched and verdict.unused is None:
        verdict.unused = head


def _start(file: File, head: SegmentHead, before: int) -> int | None:
    """The first offset of an older segment; None if nothing in it counts.

    If it cannot be read, its offsets are missing, and `replay` will raise Damaged.
    """
    batch = SegmentReader(file, head).next()
    return batch.stored.first if batch is not None and batch.stored.first < before else None


def _check_reach(found: Recovered, after: int, unread: int | None) -> None:
    if not found.used and found.numbers and found.numbers[0] != 1:
        # The newest batch is never removed: if there is none, there never was one.
        raise missing(found.numbers[0] - 1)
    if found.last < after:
        raise Damaged(f"the log ends at offset {found.last}, but the checkpoint is at {after}: segments are missing")
    if found.used and found.used[0].start > after + 1:
        raise begins_late(found.used[0], after, unread)


# --- after the verdict ------------------------------------------------------------------------


def _settle(files: Files, verdict: LogVerdict, segment_bytes: int) -> None:
    found = verdict.found
    if verdict.tail is not None and verdict.final is not None:
        tail = OpenSegment(files.open(name_of(verdict.tail.number)), verdict.tail, verdict.continue_at or 0)
        try:
            # Every batch but the last was synced before the next was begun. The last may be only
            # in memory, and after a failed sync the kernel treats such pages as clean: this sync
            # covers them only if the same bytes are written again.
            tail.file.write(verdict.final.position, verdict.final.raw)
            tail.file.sync()
        except OSError:
            close_quietly(tail.file)
            raise
        if verdict.continue_at is None:
            close_quietly(tail.file)
        else:
            found.current = tail
    if verdict.unused is not None and verdict.unused.size == segment_bytes:
        found.spare = _reuse(files, verdict.unused)


def _reuse(files: Files, head: SegmentHead) -> OpenSegment | None:
    """Use a spare that was left. If that fails, another one will be created."""
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
    return OpenSegment(file, head)
