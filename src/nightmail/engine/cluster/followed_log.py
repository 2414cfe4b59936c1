"""One shard's part of the shared log, as its owner sees it: a `Log` over a window of batches that were read.

Knows:   every batch between the owner's checkpoint and the newest one read, so that a rebuild replays from memory.
Touches: the shared log, by appending and following.
Never:   waits for the network in `replay`, or trims what this owner has not read: it folds its own appends at once,
         and may save them before they come back from the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from nightmail.engine.ports import Stored

from .ports import PLACE_UNKNOWN, SharedLog


class FollowedLog:
    def __init__(
        self,
        shared: SharedLog,
        shard: int,
        after: int,
        on_batch: Callable[[], None],
        on_trimmed_away: Callable[[], None],
    ) -> None:
        self._shared, self._shard = shared, shard
        self._on_batch, self._on_trimmed_away = on_batch, on_trimmed_away
        self._batches: list[Stored] = []
        self._begin = self._last = after
        """The window holds what is above `_begin`, up to `_last`."""
        self._open = True
        self._stop: Callable[[], None] = _nothing
        self._follow(after)

    def _follow(self, after: int) -> None:
        self._stop()
        self._batches = []
        self._begin = self._last = after
        self._broken_off = False
        """Nothing follows any more: the shared log begins above the window."""
        self._stop = self._shared.follow(self._shard, after, self)

    # --- from the shared log ------------------------------------------------------------------

    def take(self, batch: Stored) -> None:
        if self._open and batch.last > self._last:
            assert batch.first <= self._last + 1, f"the log has a hole between {self._last} and {batch.first}"
            self._batches.append(batch)
            self._last = batch.last
            self._on_batch()

    def trimmed_away(self) -> None:
        if self._open:
            self._broken_off = True
            self._on_trimmed_away()

    # --- the port -----------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The newest offset that was read."""
        return self._last

    @property
    def tight(self) -> bool:
        """Never: the services that hold a shared log watch over their disks."""
        return False

    @property
    def is_full(self) -> bool:
        return False

    @property
    def span(self) -> int:
        return self._shared.span

    @property
    def batch_bytes_max(self) -> int:
        return self._shared.batch_bytes_max

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        def appended(first: int | None) -> None:
            if self._open:
                # Without a place it cannot be folded now: the reader brings it.
                done(None if first == PLACE_UNKNOWN else first)

        self._shared.append(self._shard, at, records, appended)

    def replay(self, after: int) -> Iterator[Stored]:
        """What was read so far. If the window does not reach `after`, following begins again from there."""
        if self._broken_off or not self._begin <= after <= self._last:
            self._follow(after)
        return self.after(after)

    def after(self, offset: int) -> Iterator[Stored]:
        """Every batch that was read and has a record above `offset`."""
        return iter(self._batches[self._count_upto(offset) :])

    def trim(self, upto: int, now: int) -> None:
        if not self._open:
            return
        read = min(upto, self._last)
        del self._batches[: self._count_upto(read)]
        self._begin = max(self._begin, read)
        self._shared.trim(self._shard, read, now)

    def _count_upto(self, offset: int) -> int:
        return bisect_right(self._batches, offset, key=_last_of)

    def close(self) -> None:
        self._open = False
        self._stop()


def _last_of(batch: Stored) -> int:
    return batch.last


def _nothing() -> None:
    """Nothing is followed yet."""
