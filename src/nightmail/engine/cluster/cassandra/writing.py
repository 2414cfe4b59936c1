"""Writes of one turn, put together: those of one partition go out as one mutation.

Knows:   what waits for the end of the turn, and how many mutations are under way.
Touches: the session.
Never:   puts two partitions into one batch, or answers a write before its mutation is acknowledged.

A mutation inside one partition costs its replicas a tenth of what its rows would cost one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import NamedTuple

from nightmail.engine.cluster.store import Done
from nightmail.engine.ports import Failed

from .session import CassandraSession, Rows, Values

BATCH_WRITES = 200
AT_ONCE = 16
"""Mutations under way together: bounds what Cassandra has to queue for one node."""


class RowWrite(NamedTuple):
    statement: str
    values: Values
    size: int
    done: Done


class PartitionWriter:
    def __init__(
        self, session: CassandraSession, batch_bytes: int, call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self._session, self._batch_bytes, self._call_soon = session, batch_bytes, call_soon
        self._turn: dict[Hashable, list[RowWrite]] = {}
        """Partition → what was written in this turn."""
        self._batches: deque[list[RowWrite]] = deque()
        self._under_way = 0

    def write(self, partition: Hashable, statement: str, values: Values, size: int, done: Done) -> None:
        if not self._turn:
            self._call_soon(self._end_turn)
        self._turn.setdefault(partition, []).append(RowWrite(statement, values, size, done))

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, {}
        for writes in turn.values():
            self._cut(writes)
        self._go_on()

    def _cut(self, writes: list[RowWrite]) -> None:
        batch, size = list[RowWrite](), 0
        for write in writes:
            if batch and (len(batch) == BATCH_WRITES or size + write.size > self._batch_bytes):
                self._batches.append(batch)
                batch, size = [], 0
            batch.append(write)
            size += write.size
        self._batches.append(batch)

    def _go_on(self) -> None:
        while self._batches and self._under_way < AT_ONCE:
            self._begin(self._batches.popleft())

    def _begin(self, batch: list[RowWrite]) -> None:
        def ended(found: Rows | Failed) -> None:
            self._under_way -= 1
            self._go_on()
            failed = found if isinstance(found, Failed) else None
            for write in batch:
                write.done(failed)

        self._under_way += 1
        self._session.execute_batch([(write.statement, write.values) for write in batch], ended)
