"""Remembers every durable batch and every checkpoint, to prove that a replay gives the same state.

Stands between the loop and its ports and changes nothing that passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias

from nightmail.core.gaps import gap_at
from nightmail.core.state import ShardState, decode_entry, encode_row
from nightmail.engine.folding import Folding
from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, Failed, Log, Overtaken, RowKey, Rows, Stored
from nightmail.model.rows import Entry, Kept, Mailbox, queue_id
from sim.faults.log_wrapper import LogWrapper
from sim.faults.rows_wrapper import RowsWrapper
from sim.world.poison import Poison
from sim.world.world import Broken, World

SAME = "replay gives the same state"
InStore: TypeAlias = Callable[[int], Sequence[tuple[int, bytes]] | None]
"""Queue → what the live store has of it; None: that cannot be told now."""


class Checkpoints:
    """Every checkpoint that was ever given to the rows of one shard, by whichever owner."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken: list[tuple[int, Checkpoint]] = []
        """(base, checkpoint): it has what changed since `base`, so it follows on any that stands between."""

    def take(self, base: int, checkpoint: Checkpoint) -> None:
        is_repeated = bool(self._taken) and self._taken[-1][1] is checkpoint
        if base < checkpoint.upto and not is_repeated:
            self._taken.append((base, checkpoint))

    def some(self, upto: int) -> MemoryRows:
        """Rows as they stood after a random one of them, or before the first."""
        rows = MemoryRows()
        for _ in range(self._world.between(0, len(self._taken))):
            following = [new for base, new in self._taken if base <= rows.pointer < new.upto <= upto]
            if not following:
                break
            rows.save(self._world.chance.choice(following), lambda _: None)
        if rows.pointer:
            self._world.hit("replay from an older checkpoint")
        return rows


class Shadow:
    """Every batch that was ever durable."""

    def __init__(self) -> None:
        self._batches: dict[int, Stored] = {}

    def keep_batch(self, batch: Stored) -> None:
        known = self._batches.setdefault(batch.first, batch)
        if list(known.records) != list(batch.records) or known.at != batch.at:
            raise Broken("only what is durable", f"offset {batch.first} was one thing and is another now")

    def batches(self) -> list[Stored]:
        return [self._batches[first] for first in sorted(self._batches)]


def compare_with_replay(
    live: ShardState,
    rows: MemoryRows,
    batches: Sequence[Stored],
    new_state: Callable[[], ShardState],
    in_store: InStore,
) -> None:
    """Fold `batches` from the checkpoint in `rows` on; every row and every entry must be as it is live."""
    recorded = _Recorded([batch for batch in batches if batch.last <= live.offset])
    replayed = Folding(recorded, rows, new_state, lambda _: None, _raise, lambda _: None)
    replayed.rebuild()
    while replayed.wants_rebuild:
        replayed.rebuild()
    again = replayed.state
    if again.offset != live.offset:
        raise Broken(SAME, f"ends at {again.offset}, live is at {live.offset}")
    if encode_row(live.shard) != encode_row(again.shard):
        raise Broken(SAME, f"the shard is {again.shard}, live it is {live.shard}")
    for key, row in list(live.known_rows()):
        again.install(key, rows.rows.get(key))
        other = again.row(key)
        if (row and encode_row(row)) != (other and encode_row(other)):
            raise Broken(SAME, f"{key} is {other}, live it is {row}")
    known = {queue_id(device, lane) for device in live.mailboxes for lane in (0, 1)}
    for queue in sorted(known | live.entries.keys()):
        _compare_entries(live, again, rows, queue, in_store)


def _compare_entries(live: ShardState, again: ShardState, rows: MemoryRows, queue: int, in_store: InStore) -> None:
    """Whatever waits, and nothing else, is there: in memory or in the store, live and replayed, the same."""
    key = RowKey(Kept.MAILBOX, queue >> 1)
    again.install(key, rows.rows.get(key))
    waiting = _waiting(again.mailboxes[key.a], queue & 1)
    again.install_entries(queue, [(seq, entry) for (of, seq), entry in rows.entries.items() if of == queue])
    replayed = again.entries.get(queue, {})
    if replayed.keys() != waiting:
        raise Broken(SAME, f"{key} has {sorted(replayed)} after a replay, and {sorted(waiting)} wait")
    held = dict(live.entries.get(queue, {}))
    if waiting - held.keys() and (stored := in_store(queue)) is not None:
        held |= {seq: decode_entry(entry) for seq, entry in stored if seq in waiting - held.keys()}
        if held.keys() != waiting:
            raise Broken(SAME, f"{key} has {sorted(held)} live, and {sorted(waiting)} wait")
    for seq, entry in held.items():
        if replayed.get(seq) != entry:
            raise Broken(SAME, f"{key} has {_short(replayed.get(seq))} as {seq}, live it is {_short(entry)}")


def _waiting(mailbox: Mailbox | None, lane: int) -> set[int]:
    if mailbox is None:
        return set()
    queue = mailbox.lanes[lane]
    return {seq for seq in range(queue.acked + 1, queue.head + 1) if gap_at(queue.gaps, seq) is None}


def _short(entry: Entry | None) -> str:
    return f"{entry.id}, ciphertext {sha256(entry.ciphertext).hexdigest()[:8]}," if entry else "nothing"


class _Recorded:
    """The durable batches, to be replayed only."""

    def __init__(self, batches: list[Stored]) -> None:
        self._batches = batches
        self.last = batches[-1].last if batches else 0
        self.tight = self.is_full = False
        self.batch_bytes_max, self.span = 0, 1

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        raise AssertionError("nothing is appended to a recording")

    def replay(self, after: int) -> Iterator[Stored]:
        return iter([batch for batch in self._batches if batch.last > after])

    def trim(self, upto: int, now: int) -> None: ...

    def close(self) -> None: ...


class ShadowLog(LogWrapper):
    def __init__(self, log: Log, shadow: Shadow) -> None:
        super().__init__(log)
        self._shadow = shadow

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        def appended(first: int | None) -> None:
            if first is not None:
                self._shadow.keep_batch(Stored(first, at, records, self.log.span))
            done(first)

        self.log.append(at, records, appended)

    def replay(self, after: int) -> Iterator[Stored]:
        for batch in self.log.replay(after):
            self._shadow.keep_batch(batch)
            yield batch


class ShadowRows(RowsWrapper[Rows]):
    def __init__(self, rows: Rows, checkpoints: Checkpoints) -> None:
        super().__init__(rows)
        self._checkpoints = checkpoints

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        self._checkpoints.take(self.rows.pointer, checkpoint)
        self.rows.save(checkpoint, done)


def _raise(_offset: int, error: Exception) -> None:
    if not isinstance(error, Poison):
        raise error
