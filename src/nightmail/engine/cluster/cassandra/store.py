"""The `WideStore` on Cassandra.

Knows:   which table and which bucket has what, and the timestamp of every write and removal.
Touches: Cassandra, through its session.
Never:   lets a clock decide between two writes.

A row's version is its timestamp, and what is trimmed is removed with one below the bound: a write that comes late
stays dead. An entry is written with 1 and removed with 2; a forward likewise. A pointer's timestamp is the pointer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec

from nightmail.engine.cluster.store import Done, NotesBlock
from nightmail.engine.ports import Failed
from nightmail.model.limits import DAY_MS
from nightmail.model.rows import EntryRange, RowKey

from .session import CassandraSession, Rows
from .settings import CassandraSettings
from .writing import PartitionWriter

OVERHEAD = 100
"""Bytes of a row beside its value, as Cassandra counts them."""
BLOCKS_READ = 64

READ_ROW = "SELECT value FROM row WHERE shard=? AND bucket=? AND kind=? AND a=? AND b=? AND version<=? LIMIT 1"
WRITE_ROW = "INSERT INTO row (shard, bucket, kind, a, b, version, value) VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
TRIM_ROW = "DELETE FROM row USING TIMESTAMP ? WHERE shard=? AND bucket=? AND kind=? AND a=? AND b=? AND version<?"
READ_ENTRIES = "SELECT seq, entry FROM inbox WHERE shard=? AND queue=? AND seq>=? AND seq<=?"
WRITE_ENTRY = "INSERT INTO inbox (shard, queue, seq, entry) VALUES (?, ?, ?, ?) USING TIMESTAMP 1"
TRIM_ENTRIES = "DELETE FROM inbox USING TIMESTAMP 2 WHERE shard=? AND queue=? AND seq>=? AND seq<=?"
READ_FORWARDS = "SELECT k, record FROM forward WHERE shard=? AND destination=? AND k>? AND k<=? LIMIT ?"
WRITE_FORWARD = "INSERT INTO forward (shard, destination, k, record) VALUES (?, ?, ?, ?) USING TIMESTAMP 1"
TRIM_FORWARDS = "DELETE FROM forward USING TIMESTAMP 2 WHERE shard=? AND destination=? AND k<=?"
WRITE_DAY = "INSERT INTO delivery_day (shard, day) VALUES (?, ?) USING TTL ?"
READ_DAYS = "SELECT day FROM delivery_day WHERE shard=?"
WRITE_BLOCK = (
    "INSERT INTO delivery_log (shard, day, upto, at, block) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)
READ_BLOCKS = "SELECT upto, block FROM delivery_log WHERE shard=? AND day=? AND upto<? LIMIT ?"
READ_TIMES = "SELECT upto, at FROM delivery_log WHERE shard=? AND day=?"
FORGET_BLOCK = "DELETE FROM delivery_log USING TIMESTAMP 4611686018427387903 WHERE shard=? AND day=? AND upto=?"
READ_POINTER = "SELECT upto FROM checkpoint WHERE shard=?"
ADVANCE = "INSERT INTO checkpoint (shard, upto) VALUES (?, ?) USING TIMESTAMP ?"

STATEMENTS = (
    READ_ROW, WRITE_ROW, TRIM_ROW, READ_ENTRIES, WRITE_ENTRY, TRIM_ENTRIES, READ_FORWARDS, WRITE_FORWARD,
    TRIM_FORWARDS, WRITE_DAY, READ_DAYS, WRITE_BLOCK, READ_BLOCKS, READ_TIMES, FORGET_BLOCK, READ_POINTER, ADVANCE,
)  # fmt: skip

_block = msgspec.msgpack.Decoder(tuple[int, int, int, tuple[bytes, ...], frozenset[int]])


class CassandraStore:
    """Made by `open`. All shards of the cluster; one for each node."""

    at_once = 65_536
    """A whole checkpoint: the more rows there are at once, the more of them share a bucket."""

    def __init__(self, session: CassandraSession, settings: CassandraSettings, buckets: int, notes_ms: int) -> None:
        """`buckets` are those of each shard. They never change: a row is looked for in one of them."""
        self._session, self._buckets, self._notes_s = session, buckets, max(1, notes_ms // 1_000)
        self._writer = PartitionWriter(session, settings.cql_batch_bytes, asyncio.get_running_loop().call_soon)
        self._days: set[tuple[int, int]] = set()
        """(Shard, day) that are known to be noted."""

    @classmethod
    async def open(
        cls, session: CassandraSession, settings: CassandraSettings, buckets: int, notes_ms: int
    ) -> CassandraStore:
        """Raises EngineError."""
        await session.prepare(*STATEMENTS)
        return cls(session, settings, buckets, notes_ms)

    def _bucket(self, key: RowKey) -> int:
        """Neighbours go to different buckets: accounts that were made together are busy together."""
        return _mix(key.a) % self._buckets

    # --- rows ---

    def read_row(self, shard: int, key: RowKey, upto: int, done: Callable[[bytes | None | Failed], None]) -> None:
        def found(rows: Rows | Failed) -> None:
            done(rows if isinstance(rows, Failed) else rows[0][0] if rows else None)

        self._session.execute(READ_ROW, (shard, self._bucket(key), *key, upto), found)

    def write_row(self, shard: int, key: RowKey, version: int, value: bytes | None, done: Done) -> None:
        bucket, size = self._bucket(key), OVERHEAD + len(value or b"")
        self._writer.write(
            ("row", shard, bucket), WRITE_ROW, (shard, bucket, *key, version, value, version), size, done
        )

    def trim_row(self, shard: int, key: RowKey, below: int, done: Done) -> None:
        bucket = self._bucket(key)
        self._writer.write(("row", shard, bucket), TRIM_ROW, (below - 1, shard, bucket, *key, below), OVERHEAD, done)

    # --- entries ---

    def read_entries(
        self, shard: int, wanted: EntryRange, done: Callable[[Sequence[tuple[int, bytes]] | Failed], None]
    ) -> None:
        self._session.execute(READ_ENTRIES, (shard, *wanted), _pairs(done))

    def write_entry(self, shard: int, queue: int, seq: int, entry: bytes, done: Done) -> None:
        size = OVERHEAD + len(entry)
        self._writer.write(("inbox", shard, queue), WRITE_ENTRY, (shard, queue, seq, entry), size, done)

    def trim_entries(self, shard: int, gone: EntryRange, done: Done) -> None:
        self._writer.write(("inbox", shard, gone.queue), TRIM_ENTRIES, (shard, *gone), OVERHEAD, done)

    # --- forwards ---

    def read_forwards(
        self, shard: int, to: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        self._session.execute(READ_FORWARDS, (shard, to, after, upto, limit), _pairs(done))

    def write_forward(self, shard: int, to: int, k: int, record: bytes, done: Done) -> None:
        size = OVERHEAD + len(record)
        self._writer.write(("forward", shard, to), WRITE_FORWARD, (shard, to, k, record), size, done)

    def trim_forwards(self, shard: int, to: int, upto: int, done: Done) -> None:
        self._writer.write(("forward", shard, to), TRIM_FORWARDS, (shard, to, upto), OVERHEAD, done)

    # --- the delivery log ---

    def write_block(self, shard: int, block: NotesBlock, done: Done) -> None:
        day = block.at // DAY_MS
        data = msgspec.msgpack.encode(block)

        def written(rows: Rows | Failed) -> None:
            done(rows if isinstance(rows, Failed) else None)

        def noted(rows: Rows | Failed) -> None:
            if isinstance(rows, Failed):
                done(rows)
                return
            self._days.add((shard, day))
            values = (shard, day, block.upto, block.at, data, block.upto, self._notes_s)
            self._session.execute(WRITE_BLOCK, values, written)

        if (shard, day) in self._days:
            noted([])
        else:
            # A day more: it must not end before the last of its blocks.
            self._session.execute(WRITE_DAY, (shard, day, self._notes_s + DAY_MS // 1_000), noted)

    def blocks(self, shard: int, upto: int, since: int) -> Iterator[NotesBlock]:
        below = upto + 1
        for (day,) in self._session.wait_for(READ_DAYS, (shard,)):
            if day < since // DAY_MS:
                return
            while page := self._session.wait_for(READ_BLOCKS, (shard, day, below, BLOCKS_READ)):
                for below, data in page:  # noqa: B007 (the last one is where the next page begins)
                    block = NotesBlock(*_block.decode(data))
                    if block.at >= since:
                        yield block

    def forget(self, shard: int, before: int) -> None:
        """The time to live does it; here only what an operator has shortened since."""

        def days(rows: Rows | Failed) -> None:
            for (day,) in rows if not isinstance(rows, Failed) else ():
                if day <= before // DAY_MS:
                    self._session.execute(READ_TIMES, (shard, day), lambda found, day=day: times(day, found))

        def times(day: int, rows: Rows | Failed) -> None:
            for upto, at in rows if not isinstance(rows, Failed) else ():
                if at < before:
                    self._session.execute(FORGET_BLOCK, (shard, day, upto), lambda _: None)

        self._session.execute(READ_DAYS, (shard,), days)

    # --- the pointer ---

    def read_pointer(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        def found(rows: Rows | Failed) -> None:
            done(rows if isinstance(rows, Failed) else rows[0][0] if rows else 0)

        self._session.execute(READ_POINTER, (shard,), found)

    def advance(self, shard: int, upto: int, done: Callable[[int | Failed], None]) -> None:
        def written(rows: Rows | Failed) -> None:
            if isinstance(rows, Failed):
                done(rows)
            else:
                self.read_pointer(shard, done)

        self._session.execute(ADVANCE, (shard, upto, upto), written)


def _mix(number: int) -> int:
    return ((number * 0x9E3779B97F4A7C15) & ((1 << 64) - 1)) >> 33


def _pairs(done: Callable[[Sequence[tuple[int, bytes]] | Failed], None]) -> Callable[[Rows | Failed], None]:
    def found(rows: Rows | Failed) -> None:
        done(rows if isinstance(rows, Failed) else [(number, value) for number, value in rows])

    return found
