"""Rows on a real Cassandra, for tests that wait for every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from nightmail.engine.cluster.cassandra.init import make_tables
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.settings import CassandraSettings
from nightmail.engine.cluster.cassandra.store import CassandraStore
from nightmail.engine.cluster.wide import Outcome, WideRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken
from tests.engines.started import StartedEngines

BUCKETS = 4
NOTES_MS = 3_600_000


def settings_for(engines: StartedEngines) -> CassandraSettings:
    host, port = engines.address("cassandra").split(":")
    return CassandraSettings(hosts=host, cql_port=int(port), keyspace=engines.once("keyspace"), copies=1)


class SyncCassandraRows:
    """A shard of its own in tables that all tests share: making tables takes seconds."""

    def __init__(self, engines: StartedEngines) -> None:
        self._loop = asyncio.new_event_loop()
        settings, shard = settings_for(engines), engines.next_number()
        self.session = self._loop.run_until_complete(self._open(settings))
        self.store = self._loop.run_until_complete(CassandraStore.open(self.session, settings, BUCKETS, NOTES_MS))
        opened = self.answer(lambda done: WideRows.open(self.store, shard, done))
        assert not isinstance(opened, Failed), opened
        self.rows = opened

    async def _open(self, settings: CassandraSettings) -> CassandraSession:
        await make_tables(settings)
        return await CassandraSession.connect(settings)

    def answer(self, ask: Callable[[Callable[[Any], None]], object]) -> Any:
        async def answered() -> Any:
            future = asyncio.get_running_loop().create_future()
            ask(future.set_result)
            found = await future
            while self.rows_owe:
                await self.session.settle()
            return found

        return self._loop.run_until_complete(answered())

    @property
    def rows_owe(self) -> bool:
        return hasattr(self, "rows") and bool(self.rows.owing)

    @property
    def pointer(self) -> int:
        return self.rows.pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        done(self.answer(lambda then: self.rows.load(needs, then)))

    def save(self, checkpoint: Checkpoint, done: Callable[[Outcome], None]) -> None:
        done(self.answer(lambda then: self.rows.save(checkpoint, then)))

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        done(self.answer(lambda then: self.rows.load_forwards(shard, after, upto, limit, then)))

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        done(self.answer(lambda then: self.rows.drop_forwards(shard, upto, then)))

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        yield from self._loop.run_until_complete(asyncio.to_thread(lambda: list(self.rows.recall(devices, since))))

    def forget(self, before: int) -> None:
        async def forgotten() -> None:
            self.rows.forget(before)
            await self.session.settle()

        self._loop.run_until_complete(forgotten())

    def close(self) -> None:
        self._loop.run_until_complete(self.session.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
