"""What one node's sessions send to one shard's log: one append at a time, everything that waits in the next one.

Knows:   what waits, and whether an append is under way.
Never:   has two appends under way: of two, the second may arrive although the first did not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from nightmail.engine.batching import count_fitting, records_at_once
from nightmail.model.records import Record, encode_record

from .ports import SharedLog


class QueueLimits(Struct, frozen=True):
    batch_records: int = 4_096
    """Records that one append may hold: bounds how long one fold keeps the owner's loop."""
    batch_bytes: int = 4 * 1024 * 1024
    """Likewise, in bytes; one record may be larger."""
    waiting_bytes: int = 64 * 1024 * 1024
    """What may wait for one shard's log before sends are refused: bounds memory while that log does not answer."""
    retry_ms: int = 300
    """After a failed append, before the next one."""


class AppendQueue:
    def __init__(
        self,
        log: SharedLog,
        shard: int,
        clock: Callable[[], int],
        pace: Callable[[], int],
        on_unknown: Callable[[Sequence[Record]], None],
        limits: QueueLimits,
    ) -> None:
        self._log, self._shard, self._clock, self._pace = log, shard, clock, pace
        self._on_unknown, self._limits = on_unknown, limits
        self._records: list[Record] = []
        self._data: list[bytes] = []
        self._waiting_bytes = 0
        self._under_way = False
        self._retry_at = 0

    @property
    def is_full(self) -> bool:
        """Take only what frees space."""
        return self._waiting_bytes > self._limits.waiting_bytes

    @property
    def is_idle(self) -> bool:
        """Everything that was added is durable, or was answered as unknown."""
        return not (self._records or self._under_way)

    def add(self, record: Record) -> None:
        data = encode_record(record)
        self._records.append(record)
        self._data.append(data)
        self._waiting_bytes += len(data)

    def flush(self) -> None:
        """Append what waits, unless an append is under way or has just failed."""
        if self._under_way or not self._records or self._pace() < self._retry_at:
            return
        limits, log = self._limits, self._log
        records_max = records_at_once(limits.batch_records, log.span)
        count = count_fitting(self._data, records_max, min(limits.batch_bytes, log.batch_bytes_max))
        records, data = self._records[:count], self._data[:count]
        del self._records[:count], self._data[:count]
        self._waiting_bytes -= sum(map(len, data))
        self._under_way = True

        def appended(first: int | None) -> None:
            self._under_way = False
            if first is None:
                self._retry_at = self._pace() + limits.retry_ms
                self._repeat(records)
                self._on_unknown([record for record in records if record.via])
            self.flush()

        log.append(self._shard, self._clock(), data, appended)

    def _repeat(self, records: Sequence[Record]) -> None:
        """Append again what has no address: its device takes it for heard and does not repeat it."""
        again = [record for record in records if not record.via]
        data = [encode_record(record) for record in again]
        self._records[:0], self._data[:0] = again, data
        self._waiting_bytes += sum(map(len, data))
