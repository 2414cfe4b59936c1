"""Where every shard's log stands and who owns it, for an operator. Blocks."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # pyright: ignore[reportPrivateImportUsage]  # documented
from msgspec import Struct

from nightmail.engine.ports import EngineError

from .batches import SPAN
from .settings import KafkaSettings, common, owners_group

PATIENCE_S = 10.0


class LogSeen(Struct, frozen=True):
    first: int
    """Where the log begins."""
    end: int
    owner: str
    """The name of the node that the group has given it to; empty: none."""


def survey(settings: KafkaSettings, shards: int) -> list[LogSeen]:
    """By shard. Raises EngineError."""
    admin: Any = AdminClient(common(settings))

    def offsets(spec: Any) -> list[int]:
        asked = {TopicPartition(settings.topic, shard): spec for shard in range(shards)}
        found = {
            each.partition: future for each, future in admin.list_offsets(asked, request_timeout=PATIENCE_S).items()
        }
        return [found[shard].result().offset * SPAN for shard in range(shards)]

    try:
        firsts, ends = offsets(OffsetSpec.earliest()), offsets(OffsetSpec.latest())
        group = owners_group(settings)
        described = admin.describe_consumer_groups([group], request_timeout=PATIENCE_S)[group].result()
    except KafkaException as error:
        raise EngineError(f"Kafka at {settings.brokers} does not answer: {error.args[0].str()}") from None
    owners: dict[int, str] = {}
    for each in described.members:
        for partition in each.assignment.topic_partitions if each.assignment else ():
            owners[partition.partition] = each.client_id
    return [LogSeen(firsts[shard], ends[shard], owners.get(shard, "")) for shard in range(shards)]
