"""The topic of the log: made once, and looked at before a node serves.

Knows:   what the topic must be like.
Touches: Kafka's administration. Blocks: call it from a command, or on another thread than the loop's.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # pyright: ignore[reportPrivateImportUsage]  # documented

from nightmail.engine.ports import EngineError

from .settings import MESSAGE_BYTES, KafkaSettings, common

PATIENCE_S = 10.0
SEGMENT_MS = 6 * 60 * 60 * 1000
"""A segment older than this takes no more, so that what is trimmed is gone within a day."""


def topic_settings(settings: KafkaSettings) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": "-1",  # only a checkpoint says what is not needed any more
        "retention.bytes": "-1",
        "segment.ms": str(SEGMENT_MS),
        "max.message.bytes": str(MESSAGE_BYTES),
        "min.insync.replicas": str(settings.in_sync),
        "unclean.leader.election.enable": "false",
        "message.timestamp.type": "LogAppendTime",
    }


def make_topic(settings: KafkaSettings, shards: int) -> bool:
    """Make the topic of the log. False: it is there already. Raises EngineError."""
    admin: Any = AdminClient(common(settings))  # Its futures have no types.
    wanted = NewTopic(settings.topic, shards, settings.replicas, config=topic_settings(settings))
    (future,) = admin.create_topics([wanted], operation_timeout=PATIENCE_S, request_timeout=PATIENCE_S).values()
    try:
        future.result()
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        if reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise EngineError(f"the topic {settings.topic} cannot be made: {reason.str()}") from None
    return True


def count_shards(settings: KafkaSettings) -> int:
    """How many partitions the topic has; 0: there is none. Raises EngineError."""
    try:
        found = AdminClient(common(settings)).list_topics(settings.topic, timeout=PATIENCE_S).topics[settings.topic]
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        raise EngineError(f"Kafka at {settings.brokers} does not answer: {reason.str()}") from None
    return len(found.partitions) if found.error is None else 0
