"""What an operator does with a whole cluster: make it, and look at it.

Touches: Kafka and Cassandra, from a command. A node need not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from nightmail.engine.cluster.cassandra.init import decide, decided, make_tables
from nightmail.engine.cluster.cassandra.nodes import NodeSeen, read_nodes
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.store import CassandraStore
from nightmail.engine.cluster.kafka.batches import SPAN
from nightmail.engine.cluster.kafka.survey import survey
from nightmail.engine.cluster.kafka.topics import count_shards, make_topic
from nightmail.engine.ports import EngineError, Failed
from nightmail.server.config import Config


class ClusterMade(Struct, frozen=True):
    shards: int
    buckets: int
    is_new: bool
    """False: it was there already, and is as it was."""


class ShardStanding(Struct, frozen=True):
    shard: int
    owner: str
    """Empty: none."""
    first: int
    end: int
    checkpoint: int
    behind: int
    """Batches behind the checkpoint: what a takeover replays."""


class ClusterStanding(Struct, frozen=True):
    nodes: list[NodeSeen]
    shards: list[ShardStanding]


async def make_cluster(config: Config) -> ClusterMade:
    """Topic and tables. Repeating it changes nothing. Raises EngineError."""
    await make_tables(config.cassandra)
    session = await CassandraSession.connect(config.cassandra)
    try:
        # First what is decided: the number of partitions follows from it, also if two commands run at once.
        values = await decide(session, shards=config.cluster.shards, buckets=config.cluster.buckets)
        shards, buckets = values["shards"], values["buckets"]
        is_new = await asyncio.to_thread(make_topic, config.kafka, shards)
        found = await asyncio.to_thread(count_shards, config.kafka)
        if found != shards:
            raise EngineError(f"the topic {config.kafka.topic} has {found} partitions, and the cluster {shards} shards")
        return ClusterMade(shards, buckets, is_new)
    finally:
        await session.close()


async def look_at_cluster(config: Config) -> ClusterStanding:
    """Raises EngineError."""
    session = await CassandraSession.connect(config.cassandra)
    try:
        values = await decided(session)
        if not values.get("shards"):
            raise EngineError("this cluster is not made yet: run `nightmail cluster init`")
        store = await CassandraStore.open(session, config.cassandra, values["buckets"], config.loop.notes_ms)
        logs = await asyncio.to_thread(survey, config.kafka, values["shards"])
        shards: list[ShardStanding] = []
        for shard, seen in enumerate(logs):
            pointer = await _answer(partial(store.read_pointer, shard))
            behind = (seen.end - max(pointer, seen.first)) // SPAN
            shards.append(ShardStanding(shard, seen.owner, seen.first, seen.end, pointer, max(0, behind)))
        return ClusterStanding(await read_nodes(session), shards)
    finally:
        await session.close()


async def _answer(ask: Callable[[Callable[[int | Failed], None]], None]) -> int:
    answered: asyncio.Future[int | Failed] = asyncio.get_running_loop().create_future()
    ask(answered.set_result)
    found = await answered
    if isinstance(found, Failed):
        raise EngineError(found.why)
    return found
