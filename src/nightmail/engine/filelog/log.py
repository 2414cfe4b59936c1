"""The log as segment files: one write and one sync per batch, and always a spare segment to continue in.

    log-00000007.seg    … 41 42 43
    log-00000008.seg    44 45 46 ·······        current
    log-00000009.seg    ················        spare: its space reserved, its header durable

A write or sync that fails ends its segment for good: the file is closed and never synced again,
and the next batch goes to the spare. That batch starts with the offset after the last durable one, and
so voids what the failed write may have left (`recovery.py`).

Knows:   which offsets are in which file, and what is under way.
Touches: the disk, but only by jobs given to `execute`; they report by `post`.
Never:   reads a clock: the age of a segment comes from the times it is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nightmail.engine.filelog.files import Files
from nightmail.engine.filelog.recovery import OpenSegment, close_quietly, create_segment, recover, remove_segments
from nightmail.engine.filelog.replay import UsedSegment, begins_late, replay
from nightmail.engine.filelog.segment import SECTOR, SegmentHead, encode_batch, length_of, name_of, span_of
from nightmail.engine.os_errors import cause, is_out_of_space
from nightmail.engine.ports import Post, Stored, Unwritable
from nightmail.engine.worker import Execute

SEGMENT_BYTES = 64 << 20
"""Space reserved for each segment. An idle log takes twice this on the disk."""
SEGMENT_AGE_MS = 60 * 60 * 1000
"""A segment older than this takes no more batches, so that trimmed records are soon deleted for good."""

Entropy = Callable[[int], bytes]
Done = Callable[[int | None], None]


class _Append(NamedTuple):
    at: int
    records: Sequence[bytes]
    done: Done


class FileLog:
    """The `Log` of the data folder `identity` (8 bytes): opened if it exists, otherwise created.

    `after` is the durable checkpoint: offsets up to it are not needed, all above it are. Opening
    reads and writes on the calling thread, and raises Damaged, TooNew or Unwritable.
    """

    span = 1

    def __init__(
        self,
        files: Files,
        identity: bytes,
        *,
        after: int,
        post: Post,
        execute: Execute,
        entropy: Entropy = os.urandom,
        segment_bytes: int = SEGMENT_BYTES,
        segment_age_ms: int = SEGMENT_AGE_MS,
    ) -> None:
        assert segment_bytes % SECTOR == 0
        assert segment_bytes >= 4 * SECTOR
        found = recover(files, identity, after, segment_bytes)
        self._files, self._identity = files, identity
        self._post, self._execute, self._entropy = post, execute, entropy
        self._segment_bytes, self._segment_age_ms = segment_bytes, segment_age_ms
        self._numbers = set(found.numbers)
        self._next_number = found.next_number
        self._used, self._last, self._since = found.used, found.last, found.since
        self._current, self._spare = found.current, found.spare
        self._trimmed = after
        self._held: _Append | None = None
        """Requested, but not given to the disk yet."""
        self._appending = self._writing = self._making = self._tight = self._closed = False
        self._shortage: int | None = None
        self.failure = ""
        """Why the newest write or sync that failed did so."""
        if self._current is None and self._spare is None:
            self._begin(fresh=not found.numbers)
        self._drop()
        self._want_spare()

    @property
    def last(self) -> int:
        return self._last

    @property
    def tight(self) -> bool:
        """There is no spare, and none could be created.

        While one is being created there is room enough: the current segment is new.
        """
        return self._tight

    @property
    def is_full(self) -> bool:
        return self._tight and is_out_of_space(self._shortage)

    @property
    def why_tight(self) -> str:
        """Why no spare could be created, in words."""
        return cause(self._shortage)

    @property
    def batch_bytes_max(self) -> int:
        """What the records of one batch may take, each with RECORD_OVERHEAD."""
        return self._segment_bytes - SECTOR - span_of(0)

    # --- appending ----------------------------------------------------------------------------

    def append(self, at: int, records: Sequence[bytes], done: Done) -> None:
        assert not self._appending
        assert not self._closed
        assert records
        assert length_of(records) <= self.batch_bytes_max
        self._appending = True
        self._held = _Append(at, records, done)
        self._proceed()

    def _proceed(self) -> None:
        """Begin the held append, if nothing blocks it."""
        if self._held is None or self._writing:
            return
        append = self._held
        if self._make_room(append.at, span_of(length_of(append.records))):
            self._held = None
            self._write(append.at, append.records, lambda first: self._answer(append, first))
        else:
            # Only a spare has room: the append waits until one is created or cannot be.
            self._want_spare()

    def _answer(self, append: _Append, first: int | None) -> None:
        self._appending = False
        append.done(first)

    def _give_up(self) -> None:
        """Answer the held append: nothing of it was written, and nothing will be."""
        append, self._held = self._held, None
        if append is not None:
            self._answer(append, None)

    def _make_room(self, at: int, span: int) -> bool:
        """Make sure that the current segment has room for `span` bytes; False if none has."""
        here = self._current
        fits = here is not None and here.fits(span)
        if fits and not (self._spare is not None and self._holds_last(here) and self._aged(at)):
            return True
        if self._spare is None:
            return fits
        self._move_on()
        return True

    def _move_on(self) -> None:
        """The spare becomes the current segment."""
        old, self._current, self._spare = self._current, self._spare, None
        if old is not None:
            self._execute(lambda: close_quietly(old.file))

    def _write(self, at: int, records: Sequence[bytes], done: Done) -> None:
        here = self._current
        assert here is not None
        assert not self._writing
        self._writing = True
        first = self._last + 1
        batch = encode_batch(here.head.salt, here.position, first, at, records)

        def write() -> None:
            try:
                here.file.write(here.position, batch)
                here.file.sync()
            except OSError as error:
                self.failure = cause(error.errno)
                close_quietly(here.file)
                self._post(failed)
            else:
                self._post(written)

        def failed() -> None:
            self._writing = False
            self._current = None
            if self._since is None and records:
                self._since = at
            done(None)
            self._proceed()

        def written() -> None:
            self._writing = False
            if not self._holds_last(here):
                self._used.append(UsedSegment(here.head.number, first))
                self._since = None
            if self._since is None and records:
                self._since = at
            here.position += len(batch)
            self._last += len(records)
            self._drop()
            done(first)
            self._proceed()

        self._execute(write)
        self._want_spare()

    def _holds_last(self, here: OpenSegment | None) -> bool:
        """Is the newest durable batch in this segment?"""
        return here is not None and bool(self._used) and self._used[-1].number == here.head.number

    def _aged(self, now: int) -> bool:
        # Far in the future counts as old: a wrong clock was believed when the segment was begun.
        return self._since is not None and abs(now - self._since) >= self._segment_age_ms

    # --- the spare ----------------------------------------------------------------------------

    def _begin(self, fresh: bool) -> None:
        """No segment can take a batch: create the first one before the log is used."""
        head = self._new_head()
        try:
            self._spare = create_segment(self._files, head)
        except OSError as error:
            if fresh:
                raise Unwritable(f"{name_of(head.number)} cannot be created: {cause(error.errno)}") from error
            self._tight, self._shortage = True, error.errno
        else:
            self._keep(self._spare)

    def _want_spare(self) -> None:
        if self._spare is not None or self._making or self._closed:
            return
        self._making = True
        head = self._new_head()

        def make() -> None:
            try:
                made = create_segment(self._files, head)
            except OSError as error:
                number = error.errno
                self._post(lambda: self._made(None, number))
            else:
                self._post(lambda: self._made(made))

        self._execute(make)

    def _made(self, made: OpenSegment | None, shortage: int | None = None) -> None:
        self._making, self._shortage = False, shortage
        if made is not None and self._closed:
            close_quietly(made.file)
            return
        self._tight = made is None
        if made is not None:
            self._spare = made
            self._keep(made)
            self._proceed()
        elif not self._writing:
            self._give_up()

    def _new_head(self) -> SegmentHead:
        salt = int.from_bytes(self._entropy(4), "big")
        return SegmentHead(self._identity, self._next_number, salt, self._segment_bytes)

    def _keep(self, made: OpenSegment) -> None:
        self._numbers.add(made.head.number)
        self._next_number = made.head.number + 1

    # --- trimming -----------------------------------------------------------------------------

    def trim(self, upto: int, now: int) -> None:
        """See `Log`. On an idle log, trimmed records are deleted once `now` says that they are old enough."""
        self._trimmed = max(self._trimmed, min(upto, self._last))
        self._drop()
        self._want_spare()
        here = self._current
        idle = not self._writing and self._held is None and not self._closed
        if self._since is None or self._last > self._trimmed or not idle or self._spare is None:
            return
        if self._aged(now) or (here is not None and here.position * 4 >= here.head.size):
            # All that is needed of the last segment is the number of its last offset. A batch without
            # records carries that over; once that batch is durable, the segment can be removed.
            self._move_on()
            self._write(now, (), lambda _: None)

    def _drop(self) -> None:
        """Remove all segments older than the newest one that reaches back to what is needed."""
        reaching = [segment for segment in self._used if segment.start <= self._trimmed + 1]
        if not reaching:
            return
        base = reaching[-1].number
        self._used = [segment for segment in self._used if segment.number >= base]
        gone = sorted(number for number in self._numbers if number < base)
        if not gone:
            return
        self._numbers.difference_update(gone)

        def remove() -> None:
            left = remove_segments(self._files, gone)
            self._post(lambda: self._numbers.update(left))

        self._execute(remove)

    # --- reading ------------------------------------------------------------------------------

    def replay(self, after: int) -> Iterator[Stored]:
        if after >= self._last:
            return iter(())
        if self._used[0].start > after + 1:
            raise begins_late(self._used[0], after)
        return replay(self._files, self._identity, list(self._used), after, self._last)

    def close(self) -> None:
        """Accept no more appends. One that is under way is still answered."""
        self._closed = True
        for opened in (self._current, self._spare):
            if opened is not None:
                self._execute(lambda file=opened.file: close_quietly(file))
        self._current = self._spare = None
        self._give_up()
