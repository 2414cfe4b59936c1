"""Brings the empty logs of a new cluster to an offset, so that what has numbers up to it can be brought in.

Touches: Kafka. Blocks: call it from a command.
"""

from __future__ import annotations

from confluent_kafka import KafkaException, Producer

from nightmail.engine.ports import EngineError

from .batches import SPAN, pack
from .settings import KafkaSettings, producer

PATIENCE_S = 60.0
FLUSHED_EVERY = 10_000


def messages_for(upto: int) -> int:
    """How many messages a log needs to end at `upto` or behind it."""
    return -(-upto // SPAN)


def fill(settings: KafkaSettings, shards: int, count: int, at: int, record: bytes) -> None:
    """Append `count` messages to the log of each shard, which nobody will read. Raises EngineError."""
    value, failed = pack(at, [record]), list[str]()
    try:
        sender = Producer(producer(settings))
        for nth in range(count * shards):
            sender.produce(
                settings.topic, value, partition=nth % shards,
                on_delivery=lambda error, _: failed.append(error.str()) if error else None,
            )  # fmt: skip
            if nth % FLUSHED_EVERY == 0:
                sender.flush(PATIENCE_S)
        left = sender.flush(PATIENCE_S)
    except (KafkaException, BufferError) as error:
        raise EngineError(f"Kafka at {settings.brokers} takes no messages: {error}") from None
    if failed or left:
        raise EngineError(f"Kafka at {settings.brokers} takes no messages: {failed[0] if failed else 'it is silent'}")
