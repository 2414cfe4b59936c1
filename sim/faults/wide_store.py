"""A wide-row store that loses answers, delays and repeats writes: `WideStore`, as badly as Cassandra may behave.

Knows:   every cell with the timestamp of its write; every range that was removed, with the timestamp of its removal.
Touches: memory; every choice is made by the seeded randomness it was given, and time passes by `later`.
Never:   forgets a write that it acknowledged, or moves a pointer back. Those two are what is built upon.

Of two writes to a cell the one with the later timestamp stands, whichever came last; a removal wins over
every write with an earlier timestamp, also one that comes after it. With `resurrects` a removal forgets
itself, as Cassandra does with those older than gc_grace: then a write that comes late brings back what was
removed. To our reads that is harmless. A row version is removed only when a newer one stands at or below the
pointer, and that one is still found first (it is itself removed only under the same rule, and a tombstone is
a version). An entry is removed only when it is acknowledged or dropped as of the pointer, and the mailbox
row says so to every reader. A forward is removed only when the other shard's log has it, and is dropped there
by its number when it is told again. A block of the delivery log is removed for its age, and its bytes are old news.
What comes back is rubbish that takes space until the next trim of its row or queue: never a wrong answer.

A pointer is a cell that is written with itself as its timestamp, at a quorum, and read back at a quorum: so the
greatest one stands. A write that timed out may be seen by one read; that read repairs the replicas before it answers
(read_repair = 'BLOCKING'), so every later read sees it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from nightmail.engine.cluster.store import Done, NotesBlock
from nightmail.engine.ports import Failed, is_nowhere
from nightmail.model.rows import EntryRange, RowKey

T = TypeVar("T")
Later: TypeAlias = Callable[[int, Callable[[], None]], None]
"""Call this in so many milliseconds."""

TIMED_OUT = Failed("the store did not answer in time")
REFUSED = Failed("too few replicas are alive")
FAR = 1 << 62


class Faults(Struct, frozen=True):
    """Chances are between 0 and 1, each for one operation."""

    refuses: float = 0.0
    """Answered Failed, and never applied."""
    times_out: float = 0.0
    """Answered Failed; applied before that, after it, or never. Until then a read may see it or not."""
    repeats: float = 0.0
    """Applied once more, later: a hinted hand-off."""
    slow_ms: int = 0
    """The longest that applying takes, and that the answer takes after it."""
    late_ms: int = 0
    """The longest that an operation which timed out, or a repetition, may still be on its way."""
    skew: int = 0
    """How many writes early or late a timestamp may be: clocks of clients differ."""


class _Removal(NamedTuple):
    low: int
    high: int
    stamp: int

    def covers(self, other: _Removal) -> bool:
        return self.low <= other.low and other.high <= self.high and other.stamp <= self.stamp


class _Partition(Generic[T]):
    """Cells by number."""

    def __init__(self, *, resurrects: bool) -> None:
        self._resurrects = resurrects
        self._cells: dict[int, tuple[int, T]] = {}
        self._removals: list[_Removal] = []
        self.unsure: list[Callable[[_Partition[T]], None]] = []
        """Writes that timed out: some replicas have them."""

    def put(self, number: int, stamp: int, value: T) -> None:
        present = self._cells.get(number)
        removed = any(gone.low <= number <= gone.high and stamp <= gone.stamp for gone in self._removals)
        if not removed and (present is None or present[0] <= stamp):
            self._cells[number] = stamp, value

    def remove(self, removal: _Removal) -> None:
        low, high, stamp = removal
        for number in [n for n, (written, _) in self._cells.items() if low <= n <= high and written <= stamp]:
            del self._cells[number]
        if not self._resurrects:
            self._removals = [other for other in self._removals if not removal.covers(other)]
            self._removals.append(removal)

    def read(self, low: int, high: int, chance: Random) -> list[tuple[int, T]]:
        seen = self
        if self.unsure:
            seen = _Partition[T](resurrects=self._resurrects)
            seen._cells, seen._removals = dict(self._cells), list(self._removals)
            for write in self.unsure:
                if chance.random() < 0.5:
                    write(seen)
        return sorted((number, value) for number, (_, value) in seen._cells.items() if low <= number <= high)


class _Pointer:
    """What a quorum has, and what only some replicas may have."""

    def __init__(self) -> None:
        self.stands = 0
        self.unsure: list[Callable[[_Pointer], None]] = []

    def put(self, upto: int) -> None:
        self.stands = max(self.stands, upto)

    def read(self, chance: Random) -> int:
        """Where it stands, if this read is the one that has moved it there; else 0."""
        before = self.stands
        for write in self.unsure:
            if chance.random() < 0.5:
                write(self)
        return self.stands if self.stands > before else 0


class _Unsure(Protocol):
    """What may be changed by a write that timed out."""

    @property
    def unsure(self) -> list[Any]: ...


C = TypeVar("C", bound=_Unsure)


class SimWideStore:
    """All shards. Owners share one."""

    at_once = 256

    def __init__(self, chance: Random, later: Later, faults: Faults | None = None, *, resurrects: bool = False) -> None:
        self.faults = faults or Faults()
        """May be exchanged at any time: good weather, bad weather."""
        self.hit: Callable[[str], None] = lambda what: None
        """Told of what is worth counting."""
        self._chance, self._later = chance, later
        self._issued = 0
        self._rows: dict[tuple[int, RowKey], _Partition[bytes | None]] = defaultdict(
            lambda: _Partition(resurrects=resurrects)
        )
        self._entries: dict[tuple[int, int], _Partition[bytes]] = defaultdict(lambda: _Partition(resurrects=resurrects))
        self._forwards: dict[tuple[int, int], _Partition[bytes]] = defaultdict(
            lambda: _Partition(resurrects=resurrects)
        )
        self._blocks: dict[int, _Partition[NotesBlock]] = defaultdict(lambda: _Partition(resurrects=resurrects))
        self._pointers: dict[int, _Pointer] = defaultdict(_Pointer)

    # --- rows ---

    def read_row(self, shard: int, key: RowKey, upto: int, done: Callable[[bytes | None | Failed], None]) -> None:
        assert not is_nowhere(key), "a column has 64 bits"

        def newest() -> bytes | None:
            versions = self._rows[shard, key].read(0, upto, self._chance)
            return versions[-1][1] if versions else None

        self._read(newest, done)

    def write_row(self, shard: int, key: RowKey, version: int, value: bytes | None, done: Done) -> None:
        self._put(self._rows[shard, key], version, value, done)

    def trim_row(self, shard: int, key: RowKey, below: int, done: Done) -> None:
        self._remove(self._rows[shard, key], 0, below - 1, done)

    # --- entries ---

    def read_entries(
        self, shard: int, wanted: EntryRange, done: Callable[[Sequence[tuple[int, bytes]] | Failed], None]
    ) -> None:
        assert not is_nowhere(wanted), "a column has 64 bits"
        self._read(lambda: self._entries[shard, wanted.queue].read(wanted.low, wanted.high, self._chance), done)

    def write_entry(self, shard: int, queue: int, seq: int, entry: bytes, done: Done) -> None:
        self._put(self._entries[shard, queue], seq, entry, done)

    def trim_entries(self, shard: int, gone: EntryRange, done: Done) -> None:
        self._remove(self._entries[shard, gone.queue], gone.low, gone.high, done)

    # --- forwards ---

    def read_forwards(
        self, shard: int, to: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        self._read(lambda: self._forwards[shard, to].read(after + 1, upto, self._chance)[:limit], done)

    def write_forward(self, shard: int, to: int, k: int, record: bytes, done: Done) -> None:
        self._put(self._forwards[shard, to], k, record, done)

    def trim_forwards(self, shard: int, to: int, upto: int, done: Done) -> None:
        self._remove(self._forwards[shard, to], 0, upto, done)

    # --- the delivery log ---

    def write_block(self, shard: int, block: NotesBlock, done: Done) -> None:
        self._put(self._blocks[shard], block.upto, block, done)

    def blocks(self, shard: int, upto: int, since: int) -> Iterator[NotesBlock]:
        yield from [
            block for _, block in reversed(self._blocks[shard].read(0, upto, self._chance)) if block.at >= since
        ]

    def forget(self, shard: int, before: int) -> None:
        partition = self._blocks[shard]
        for number, block in partition.read(0, FAR, self._chance):
            if block.at < before:
                partition.remove(_Removal(number, number, self._stamp()))

    # --- the pointer ---

    def read_pointer(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        def read() -> int:
            pointer = self._pointers[shard]
            if seen := pointer.read(self._chance):
                self.hit("pointer seen before it was answered")
            return max(seen, pointer.stands)

        self._read(read, done)

    def advance(self, shard: int, upto: int, done: Callable[[int | Failed], None]) -> None:
        def written(failed: Failed | None) -> None:
            if failed:
                done(failed)
            else:
                self.read_pointer(shard, done)

        self._write(self._pointers[shard], lambda pointer: pointer.put(upto), written)

    # --- what is there, without asking the weather ---

    def pointer(self, shard: int) -> int:
        return self._pointers[shard].stands

    def versions(self, shard: int, key: RowKey) -> list[tuple[int, bytes | None]]:
        return self._rows[shard, key].read(0, FAR, self._chance)

    def entries(self, shard: int, queue: int) -> list[tuple[int, bytes]]:
        return self._entries[shard, queue].read(0, FAR, self._chance)

    def forwards(self, shard: int, to: int) -> list[tuple[int, bytes]]:
        return self._forwards[shard, to].read(0, FAR, self._chance)

    # --- weather ---

    def _stamp(self) -> int:
        self._issued += 1
        skew = self.faults.skew
        return self._issued + (self._chance.randint(-skew, skew) if skew else 0)

    def _put(self, partition: _Partition[T], number: int, value: T, done: Done) -> None:
        stamp = self._stamp()
        self._write(partition, lambda there: there.put(number, stamp, value), done)

    def _remove(self, partition: _Partition[T], low: int, high: int, done: Done) -> None:
        removal = _Removal(low, high, self._stamp())
        self._write(partition, lambda there: there.remove(removal), done)

    def _write(self, partition: C, write: Callable[[C], None], done: Done) -> None:
        given_up = False

        def apply() -> None:
            write(partition)

        def repeat() -> None:
            self.hit("write repeated")
            apply()

        def give_up() -> None:
            nonlocal given_up
            given_up = True
            done(TIMED_OUT)

        def become_sure() -> None:
            partition.unsure.remove(write)
            if self._happens(0.7):
                self.hit("write timed out yet applied")
                if given_up:
                    self.hit("write came late")
                apply()

        if self._happens(self.faults.refuses):
            self._soon(lambda: done(REFUSED))
            return
        if self._happens(self.faults.repeats):
            self._at_last(repeat)
        if self._happens(self.faults.times_out):
            partition.unsure.append(write)
            self._at_last(become_sure)
            self._soon(give_up)
        else:
            self._answer(apply, done)

    def _read(self, read: Callable[[], T], done: Callable[[T | Failed], None]) -> None:
        if self._happens(self.faults.refuses):
            self._soon(lambda: done(REFUSED))
        else:
            self._answer(read, done)

    def _answer(self, operate: Callable[[], T], done: Callable[[T], None]) -> None:
        """At one moment it happens, at a later one this is known."""

        def happen() -> None:
            result = operate()
            self._soon(lambda: done(result))

        self._soon(happen)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._chance.random() < chance

    def _soon(self, job: Callable[[], None]) -> None:
        self._later(self._chance.randint(0, self.faults.slow_ms), job)

    def _at_last(self, job: Callable[[], None]) -> None:
        self._later(self._chance.randint(0, self.faults.late_ms), job)
