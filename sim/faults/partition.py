"""A partitioned log that many append to: ordered, replicated, and not always clear about what happened.

An append may be lost, or be there although nobody said so, now or later; one that carries several
records may lose the first and keep the rest, as a producer does that retries out of order. One that is durable
may be answered without its place, as after a retry that the log recognized. In some worlds each batch has a span of
numbers of its own, as in a log that numbers batches and not records. For a long time it may take no append at all,
as one with too few replicas: what it has can still be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from nightmail.engine.cluster.ports import PLACE_UNKNOWN, Follower
from nightmail.engine.ports import Failed, Stored, TrimmedAway
from nightmail.model.ids import SERVER
from nightmail.model.records import AnyBody, Forwarded, decode_record
from sim.world.world import World

FROM_SERVER = SERVER.to_bytes(8, "little")
"""How a record that no device sent begins."""


class Partition:
    """The log of one shard."""

    def __init__(self, world: World, faults: PartitionFaults) -> None:
        self._world, self._faults = world, faults
        self.batches: list[Stored] = []
        """Everything ever appended: the evidence. What is trimmed is only hidden from owners."""
        self._starts: dict[int, int] = {}
        self._told: dict[int, set[int]] = {}
        """Shard → what it has told this one."""
        self.last = 0
        self.trimmed = 0
        self.is_down = False
        self.followings: dict[Following, None] = {}

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        world, faults = self._world, self._faults
        delay = world.between(0, faults.slow_ms)
        if self.is_down:
            world.later(delay, lambda: done(None))
        elif not world.maybe(faults.rate):
            world.later(delay, lambda: self._answer(self._store(at, records), done))
        elif world.maybe(0.4):
            world.hit("append lost")
            world.later(delay, lambda: done(None))
        else:
            world.hit("append unknown")
            kept = records
            if len(records) > 1 and world.maybe(0.5):
                world.hit("append lost its first and kept the rest")
                kept = records[world.between(1, len(records) - 1) :]
            world.later(delay + world.between(0, faults.late_ms), partial(self._keep, at, kept))
            world.later(delay, lambda: done(None))

    def _keep(self, at: int, records: Sequence[bytes]) -> None:
        self._store(at, records)

    def _answer(self, first: int, done: Callable[[int | None], None]) -> None:
        if self._world.maybe(self._faults.rate):
            self._world.hit("append durable without its place")
            first = PLACE_UNKNOWN
        self._world.later(self._world.between(0, self._faults.slow_ms), lambda: done(first))

    def _store(self, at: int, records: Sequence[bytes]) -> int:
        first = self.last + 1
        for record in records:
            if record.startswith(FROM_SERVER):
                self._count(decode_record(record).body)
        self._starts[first] = len(self.batches)
        self.batches.append(stored := Stored(first, at, list(records), self._faults.span))
        self.last = stored.last
        for following in list(self.followings):
            following.wake()
        return first

    def _count(self, body: AnyBody) -> None:
        if isinstance(body, Forwarded):
            told = self._told.setdefault(body.source, set())
            if body.k in told:
                self._world.hit("forward repeated")
            told.add(body.k)

    def after(self, offset: int) -> Iterator[Stored]:
        """Batches that begin behind `offset`, which ends one; empty if the log does not reach that far yet."""
        if offset < self.trimmed:
            raise TrimmedAway(f"the log begins after offset {self.trimmed}, but what follows {offset} is wanted")
        index = self._starts.get(offset + 1, len(self.batches))
        while index < len(self.batches):
            yield self.batches[index]
            index += 1

    def follow(self, after: int, follower: Follower) -> Callable[[], None]:
        following = Following(self._world, self, after, follower)
        self.followings[following] = None
        return following.stop


class PartitionFaults:
    def __init__(self, world: World, *, on: bool) -> None:
        self.rate = world.chance.choice((0.0, 0.02, 0.1)) if on else 0.0
        self.slow_ms = world.chance.choice((0, 5, 30))
        self.late_ms = world.chance.choice((10, 2_000))
        self.span = world.chance.choice((1, 4_096))


class Outages:
    """One log after another is down, for a long time."""

    def __init__(self, world: World, partitions: Sequence[Partition], on_down: Callable[[Partition], None]) -> None:
        self._world, self._partitions, self._on_down = world, partitions, on_down
        self._on = False

    def begin(self) -> None:
        self._on = True
        self._world.later(self._world.between(1_000, 3_000), self._go_down)

    def end(self) -> None:
        self._on = False
        for partition in self._partitions:
            partition.is_down = False

    def _go_down(self) -> None:
        if not self._on:
            return
        world = self._world
        partition = world.chance.choice(self._partitions)
        partition.is_down = True
        world.hit("log down")
        self._on_down(partition)
        world.later(world.chance.choice((1_000, 5_000, 60_000)), partial(self._come_back, partition))

    def _come_back(self, partition: Partition) -> None:
        partition.is_down = False
        self._world.later(self._world.between(100, 2_000), self._go_down)


class Following:
    """Hands the batches of a partition to one follower: late, a few at a time, and sometimes with a long pause."""

    def __init__(self, world: World, partition: Partition, after: int, follower: Follower) -> None:
        self._world, self._partition, self._follower = world, partition, follower
        self._pace_ms = world.chance.choice((5, 25))
        self._cursor = after
        self._alive, self._scheduled = True, False
        self.wake()

    def wake(self) -> None:
        if self._alive and not self._scheduled:
            self._scheduled = True
            pause_ms = self._world.between(100, 2_000) if self._world.maybe(0.005) else 0
            self._world.later(pause_ms + self._world.between(0, self._pace_ms), self._read)

    def _read(self) -> None:
        self._scheduled = False
        try:
            for batch in self._partition.after(self._cursor):
                if not self._alive:
                    return
                self._cursor = batch.last
                self._follower.take(batch)
                if self._world.maybe(0.2):
                    self.wake()
                    return
        except TrimmedAway:
            if self._alive:
                self.stop()
                self._follower.trimmed_away()

    def stop(self) -> None:
        self._alive = False
        self._partition.followings.pop(self, None)


class SimSharedLog:
    """The `SharedLog` of all partitions."""

    def __init__(self, world: World, partitions: Sequence[Partition], faults: PartitionFaults) -> None:
        self._world, self._partitions, self._faults = world, partitions, faults
        self.batch_bytes_max, self.span = 1 << 30, faults.span

    @property
    def shards(self) -> int:
        return len(self._partitions)

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        self._partitions[shard].append(at, records, done)

    def end(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        delay = self._world.between(0, self._faults.slow_ms)
        if self._world.maybe(self._faults.rate):
            self._world.later(delay, lambda: done(Failed("the log did not answer in time")))
        else:
            self._world.later(delay, lambda: self._tell_end(self._partitions[shard].last, done))

    def _tell_end(self, end: int, done: Callable[[int | Failed], None]) -> None:
        """On its way the answer may grow old."""
        self._world.later(self._world.between(0, self._faults.slow_ms), lambda: done(end))

    def follow(self, shard: int, after: int, follower: Follower) -> Callable[[], None]:
        return self._partitions[shard].follow(after, follower)

    def trim(self, shard: int, upto: int, now: int) -> None:
        partition = self._partitions[shard]
        partition.trimmed = max(partition.trimmed, upto)
