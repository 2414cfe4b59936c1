"""Where every shard's log stands and who owns it, for an operator. Blocks."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
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
    try:
        firsts, ends = (
            _offsets(admin, settings, shards, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        owners = _owners(admin, owners_group(settings))
    except KafkaException as error:
        raise _silent(settings, error) from None
    return [LogSeen(firsts[shard], ends[shard], owners.get(shard, "")) for shard in range(shards)]


def ends(settings: KafkaSettings, shards: int) -> list[int]:
    """Where each shard's log ends, also where no node has ever run. Raises EngineError."""
    try:
        return _offsets(AdminClient(common(settings)), settings, shards, OffsetSpec.latest())
    except KafkaException as error:
        raise _silent(settings, error) from None


def _offsets(admin: Any, settings: KafkaSettings, shards: int, spec: Any) -> list[int]:
    asked = {TopicPartition(settings.topic, shard): spec for shard in range(shards)}
    found = {each.partition: future for each, future in admin.list_offsets(asked, request_timeout=PATIENCE_S).items()}
    return [found[shard].result().offset * SPAN for shard in range(shards)]


def _silent(settings: KafkaSettings, error: KafkaException) -> EngineError:
    reason: KafkaError = error.args[0]
    return EngineError(f"Kafka at {settings.brokers} does not answer: {reason.str() or reason.name()}")


def _owners(admin: Any, group: str) -> dict[int, str]:
    """Raises KafkaException."""
    try:
        described = admin.describe_consumer_groups([group], request_timeout=PATIENCE_S)[group].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return {}  # No node has ever run.
        raise
    owners: dict[int, str] = {}
    for each in described.members:
        for partition in each.assignment.topic_partitions if each.assignment else ():
            owners[partition.partition] = each.client_id
    return owners
