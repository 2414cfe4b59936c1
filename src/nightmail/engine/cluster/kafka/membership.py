"""Who owns a shard: the partitions of the log's topic, as Kafka's consumer group hands them out.

Knows:   which partitions this member has.
Touches: one consumer, from a thread of its own; the loop's thread, by `post`.
Never:   reads the log: every partition is paused as soon as it is assigned. Never decides anything by time: the
         brokers notice who is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaException, TopicPartition

from nightmail.engine.ports import Post

from .settings import KafkaSettings, member

POLL_S = 0.1
Shards: TypeAlias = Callable[[Collection[int]], None]


class GroupMembership:
    """`close` gives the shards back, so that others have them at once."""

    def __init__(
        self, settings: KafkaSettings, name: str, post: Post, on_gained: Shards, on_lost: Shards,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._topic, self._post = settings.topic, post
        self._on_gained, self._on_lost, self._on_trouble = on_gained, on_lost, on_trouble
        self._consumer: Any = Consumer(member(settings, name))
        self._open = True
        self._thread = Thread(target=self._run, name="shard owners", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._open = False
        self._thread.join()

    # --- on the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._gain, on_revoke=self._lose, on_lost=self._lose)
        while self._open:
            try:
                message = self._consumer.poll(POLL_S)
            except KafkaException as error:
                self._post(partial(self._on_trouble, str(error)))
                continue
            if message is not None and (error := message.error()):
                self._post(partial(self._on_trouble, error.str()))
        self._consumer.close()

    def _gain(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self._post(partial(self._on_gained, [each.partition for each in partitions]))

    def _lose(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self._post(partial(self._on_lost, [each.partition for each in partitions]))
