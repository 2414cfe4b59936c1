"""The `SharedLog` on Kafka.

Knows:   which append is under way in which partition, and what waits behind it.
Touches: Kafka: one producer, readers, one client for ends and trims; the loop's thread, by `post`.
Never:   has two appends under way in one partition: of two, the second may arrive although the first did not, and
         after a time-out even idempotence does not keep their order.

Nobody is fenced: an owner that was replaced may go on appending (decision 15).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # pyright: ignore[reportPrivateImportUsage]  # documented

from nightmail.engine.cluster.ports import PLACE_UNKNOWN, Follower
from nightmail.engine.cluster.posting import CoalescedPost
from nightmail.engine.ports import RECORD_OVERHEAD, Failed, Post

from .batches import HEAD_BYTES, SPAN, first_of, message_after, pack
from .reading import Following, PartitionReader
from .settings import MESSAGE_BYTES, KafkaSettings, administrator, producer, reader

POLL_S = 0.1
REQUEST_S = 2.0
ENVELOPE_BYTES = 1_024
"""What Kafka may add to a message."""

Appended: TypeAlias = Callable[[int | None], None]
Ended: TypeAlias = Callable[[int | Failed], None]
Futures: TypeAlias = dict[TopicPartition, "Future[Any]"]


class KafkaLog:
    """Close it when nothing is under way any more that anybody waits for."""

    def __init__(
        self, settings: KafkaSettings, shards: int, post: Post, on_trouble: Callable[[str], None] = lambda _: None
    ) -> None:
        self._settings, self._topic, self._shards = settings, settings.topic, shards
        self._post, self._on_trouble = CoalescedPost(post), on_trouble
        self._waiting: list[deque[tuple[bytes, Appended]]] = [deque() for _ in range(shards)]
        """Per shard: the append under way, and those behind it."""
        self._enders: dict[int, list[Ended]] = {}
        """Who asks for a shard's end with the next request."""
        self._asking: set[int] = set()
        """Shards whose end is being asked for."""
        self._trims: dict[int, int] = {}
        """Shard → the first message that stays, of trims that are owed."""
        self._trimmed = [0] * shards
        self._trimming = False
        self._readers: list[PartitionReader] = []
        self._admin: Any = AdminClient(administrator(settings))  # Its futures have no types.
        self._open = True
        self._producer = Producer(producer(settings))
        self._poller = Thread(target=self._poll, name="log appends", daemon=True)
        self._poller.start()

    @property
    def shards(self) -> int:
        return self._shards

    @property
    def span(self) -> int:
        return SPAN

    @property
    def batch_bytes_max(self) -> int:
        return MESSAGE_BYTES - HEAD_BYTES - ENVELOPE_BYTES

    @property
    def under_way(self) -> int:
        """Appends, questions and trims that are not answered yet."""
        return sum(map(len, self._waiting)) + len(self._enders) + len(self._asking) + len(self._trims) + self._trimming

    @property
    def followings(self) -> list[Following]:
        return [following for each in self._readers for following in each.followings.values()]

    # --- appending ------------------------------------------------------------------------------

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Appended) -> None:
        assert sum(map(len, records)) + RECORD_OVERHEAD * len(records) <= self.batch_bytes_max, "too much for a message"
        waiting = self._waiting[shard]
        waiting.append((pack(at, records), done))
        if len(waiting) == 1:
            self._produce(shard)

    def _produce(self, shard: int) -> None:
        value, _ = self._waiting[shard][0]
        try:
            self._producer.produce(self._topic, value, partition=shard, on_delivery=partial(self._delivered, shard))
        except (BufferError, KafkaException):
            self._post(partial(self._settle, shard, None))

    def _delivered(self, shard: int, error: KafkaError | None, message: Message) -> None:
        """On the thread that polls."""
        place: int | None = None
        if error is None:
            offset = message.offset()
            # After a retry that the broker recognized, nobody says where it stands.
            place = PLACE_UNKNOWN if offset is None or offset < 0 else first_of(offset)
        self._post(partial(self._settle, shard, place))

    def _settle(self, shard: int, place: int | None) -> None:
        waiting = self._waiting[shard]
        _, done = waiting.popleft()
        if waiting:
            self._produce(shard)
        done(place)

    def _poll(self) -> None:
        while self._open:
            self._producer.poll(POLL_S)

    # --- where it ends --------------------------------------------------------------------------

    def end(self, shard: int, done: Ended) -> None:
        self._enders.setdefault(shard, []).append(done)
        self._ask_ends()

    def _ask_ends(self) -> None:
        """One request at a time, for every shard that somebody asks for: it counts from when it is sent."""
        if self._asking or not self._enders:
            return
        asked, self._enders = self._enders, {}
        self._asking = set(asked)
        latest = {TopicPartition(self._topic, shard): OffsetSpec.latest() for shard in asked}
        futures: Futures = self._admin.list_offsets(latest, request_timeout=REQUEST_S)
        for partition, future in futures.items():
            future.add_done_callback(partial(self._heard_end, partition.partition, asked[partition.partition]))

    def _heard_end(self, shard: int, enders: Iterable[Ended], future: Future[Any]) -> None:
        """On the driver's thread."""
        if error := future.exception():
            self._post(partial(self._tell_end, shard, enders, Failed(f"the log of shard {shard}: {_said(error)}")))
        else:
            self._post(partial(self._tell_end, shard, enders, future.result().offset * SPAN))

    def _tell_end(self, shard: int, enders: Iterable[Ended], end: int | Failed) -> None:
        self._asking.discard(shard)
        self._ask_ends()
        for done in enders:
            done(end)

    # --- reading and trimming -------------------------------------------------------------------

    def follow(self, shard: int, after: int, follower: Follower) -> Callable[[], None]:
        found = next((each for each in self._readers if shard not in each.followings), None)
        if found is None:
            found = PartitionReader(reader(self._settings), self._topic, self._post, self._on_trouble)
            self._readers.append(found)
        found.follow(following := Following(shard, message_after(after), follower))
        return partial(found.stop, following)

    def trim(self, shard: int, upto: int, now: int) -> None:
        """Old bytes age by themselves, in closed segments."""
        keep = message_after(upto)
        if keep > max(self._trimmed[shard], self._trims.get(shard, 0)):
            self._trims[shard] = keep
            self._trim()

    def _trim(self) -> None:
        if self._trimming or not self._trims:
            return
        trims, self._trims, self._trimming = self._trims, {}, True
        left = set(trims)

        def ended(shard: int, error: BaseException | None) -> None:
            left.discard(shard)
            if error is None:
                self._trimmed[shard] = max(self._trimmed[shard], trims[shard])
            if not left:  # What failed is asked for with the next checkpoint.
                self._trimming = False
                self._trim()

        def heard(shard: int, future: Future[Any]) -> None:
            self._post(partial(ended, shard, future.exception()))

        partitions = [TopicPartition(self._topic, shard, keep) for shard, keep in trims.items()]
        futures: Futures = self._admin.delete_records(partitions, request_timeout=REQUEST_S)
        for partition, future in futures.items():
            future.add_done_callback(partial(heard, partition.partition))

    def close(self) -> None:
        for each in self._readers:
            each.close()
        self._open = False
        self._poller.join()
        self._producer.purge()


def _said(error: BaseException) -> str:
    """What the driver says, in words."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(error)
