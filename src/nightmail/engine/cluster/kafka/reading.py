"""Following partitions: a consumer, a thread that polls it, and batches on the loop's thread.

Knows:   which partition stands where.
Touches: one consumer, from its own thread only.
Never:   joins a group, or skips a message: one that is missing was trimmed away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from nightmail.engine.cluster.ports import Follower
from nightmail.engine.ports import Post

from .batches import unpack

WAIT_S = 0.02
"""The longest that a thread waits for messages before it looks for what it was told."""
AT_ONCE = 256
"""Messages that are handed over together."""

Read: TypeAlias = "tuple[Following, int, bytes | None]"
"""A message; None: it is trimmed away."""


class Following:
    """One follower of one partition."""

    def __init__(self, shard: int, message: int, follower: Follower) -> None:
        self.shard, self.next, self.follower = shard, message, follower
        self.alive = True

    def take(self, message: int, value: bytes | None) -> None:
        """On the loop's thread."""
        if not self.alive or message < self.next:
            return
        if value is None or message > self.next:
            self.alive = False
            self.follower.trimmed_away()
        else:
            self.next = message + 1
            self.follower.take(unpack(message, value))


class PartitionReader:
    """Follows each partition at most once. `close` returns when its thread has ended."""

    def __init__(self, settings: Mapping[str, Any], topic: str, post: Post, on_trouble: Callable[[str], None]) -> None:
        self._topic, self._post, self._on_trouble = topic, post, on_trouble
        self.followings: dict[int, Following] = {}
        self._orders: SimpleQueue[tuple[int, Following | None] | None] = SimpleQueue()
        """(Shard, whom to follow it for; None: nobody any more); None: end."""
        self._consumer = Consumer(dict(settings))
        self._thread = Thread(target=self._run, name="log reader", daemon=True)
        self._thread.start()

    def follow(self, following: Following) -> None:
        self.followings[following.shard] = following
        self._orders.put((following.shard, following))

    def stop(self, following: Following) -> None:
        following.alive = False
        if self.followings.get(following.shard) is following:
            del self.followings[following.shard]
            self._orders.put((following.shard, None))

    def close(self) -> None:
        self._orders.put(None)
        self._thread.join()

    # --- on the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        followed: dict[int, Following] = {}
        while self._obey(followed):
            read: list[Read] = []
            message = self._consumer.poll(WAIT_S)
            while message is not None:
                if found := self._look(message, followed):
                    read.append(found)
                message = self._consumer.poll(0) if len(read) < AT_ONCE else None
            if read:
                self._post(partial(_hand_out, read))
        self._consumer.close()

    def _obey(self, followed: dict[int, Following]) -> bool:
        while not self._orders.empty():
            if (order := self._orders.get()) is None:
                return False
            shard, following = order
            if followed.pop(shard, None):
                self._consumer.incremental_unassign([TopicPartition(self._topic, shard)])
            if following:
                followed[shard] = following
                self._consumer.incremental_assign([TopicPartition(self._topic, shard, following.next)])
        return True

    def _look(self, message: Message, followed: Mapping[int, Following]) -> Read | None:
        shard, offset = message.partition(), message.offset()
        following = followed.get(shard) if shard is not None else None
        if (error := message.error()) is None:
            value = message.value()
            return (following, offset, bytes(value)) if following and offset is not None and value else None
        if error.code() == KafkaError._AUTO_OFFSET_RESET and following:
            return following, following.next, None
        self._post(partial(self._on_trouble, error.str()))
        return None


def _hand_out(read: list[Read]) -> None:
    for following, message, value in read:
        following.take(message, value)
