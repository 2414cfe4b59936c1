"""What the loop needs of a log. `ports.py` offers it with the other ports, and says the manner of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol


def last_of(first: int, count: int, span: int) -> int:
    """Where a batch of so many records ends: with its last record, or at the next multiple of `span`."""
    return -(-(first + count - 1) // span) * span


class Stored(NamedTuple):
    """A durable batch as it was appended: records `first`, `first + 1`, …, accepted at `at`."""

    first: int
    at: int
    records: Sequence[bytes]
    span: int = 1
    """See `Log.span`."""

    @property
    def last(self) -> int:
        """The batch covers the numbers up to here: the next one begins behind it."""
        return last_of(self.first, len(self.records), self.span)


RECORD_OVERHEAD = 4


class Log(Protocol):
    """Everything that was accepted, in order. Offsets start at 1, and each batch begins where the one before ends."""

    @property
    def span(self) -> int:
        """1: a batch ends with its last record. Else it has at most so many records, and ends at a multiple of this:
        its place among the batches and the offsets of its records follow from each other."""
        ...

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        """Make a batch durable as a whole. `done(first offset)`, or `done(None)`: outcome unknown.

        After None the batch may or may not be found by a later `replay`; an append that comes
        after it is never confused with it. One append is under way at a time.
        """
        ...

    @property
    def last(self) -> int:
        """The newest durable offset."""
        ...

    @property
    def tight(self) -> bool:
        """Space runs out: append only what frees space (acknowledgements)."""
        ...

    @property
    def is_full(self) -> bool:
        """`tight`, because the disk has no space; not because it fails, or for want of anything else."""
        ...

    def replay(self, after: int) -> Iterator[Stored]:
        """Every durable batch with a record above `after`, oldest first. Raises Damaged if one is missing.

        A log that several owners share raises TrimmedAway instead if it now begins above `after + 1`.
        """
        ...

    @property
    def batch_bytes_max(self) -> int:
        """The most that one append may hold, counting `RECORD_OVERHEAD` for each record."""
        ...

    def trim(self, upto: int, now: int) -> None:
        """Offsets up to `upto` are never needed again, and their bytes must be gone within a day.

        Called after every checkpoint, and now and then when nothing happens: `now` lets it age.
        """
        ...

    def close(self) -> None: ...
