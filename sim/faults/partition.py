"""A partitioned log that many append to: ordered, replicated, and not always clear about what happened.

An append may be lost, or be there although nobody said so, now or later; one that carries several
records may lose the first and keep the rest, as a producer does that retries out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from nightmail.engine.ports import Stored, TrimmedAway
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

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        world, faults = self._world, self._faults
        delay = world.between(0, faults.slow_ms)
        if not world.maybe(faults.rate):
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
        self._world.later(self._world.between(0, self._faults.slow_ms), lambda: done(first))

    def _store(self, at: int, records: Sequence[bytes]) -> int:
        first = self.last + 1
        for record in records:
            if record.startswith(FROM_SERVER):
                self._count(decode_record(record).body)
        self._starts[first] = len(self.batches)
        self.batches.append(Stored(first, at, list(records)))
        self.last += len(records)
        return first

    def _count(self, body: AnyBody) -> None:
        if isinstance(body, Forwarded):
            told = self._told.setdefault(body.source, set())
            if body.k in told:
                self._world.hit("forward repeated")
            told.add(body.k)

    def after(self, offset: int) -> Iterator[Stored]:
        """Batches that begin behind `offset`, which ends one."""
        if offset < self.trimmed:
            raise TrimmedAway(f"the log begins after offset {self.trimmed}, but what follows {offset} is wanted")
        index = self._starts.get(offset + 1, len(self.batches))
        while index < len(self.batches):
            yield self.batches[index]
            index += 1


class PartitionFaults:
    def __init__(self, world: World, *, on: bool) -> None:
        self.rate = world.chance.choice((0.0, 0.02, 0.1)) if on else 0.0
        self.slow_ms = world.chance.choice((0, 5, 30))
        self.late_ms = world.chance.choice((10, 2_000))


class OwnersLog:
    """What one owner sees of a partition: the `Log` port."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.batch_bytes_max = 1 << 30
        self.tight = self.is_full = False
        self.alive = True

    @property
    def last(self) -> int:
        return self._partition.last

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        self._partition.append(at, records, lambda first: done(first) if self.alive else None)

    def replay(self, after: int) -> Iterator[Stored]:
        """Up to the log's end as it is now."""
        end = self._partition.last
        for batch in self._partition.after(after):
            if batch.first > end:
                return
            yield batch

    def trim(self, upto: int, now: int) -> None:
        self._partition.trimmed = max(self._partition.trimmed, upto)

    def close(self) -> None:
        self.alive = False
