"""Remembers every durable batch and every checkpoint, to prove that a replay gives the same state.

Stands between the loop and its ports and changes nothing that passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nightmail.core.state import State, encode_row
from nightmail.engine.folding import Folding
from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Log, Need, Overtaken, Rows, Stored

from .world import Broken, World


class Shadow:
    def __init__(self, world: World) -> None:
        self._world = world
        self._batches: dict[int, Stored] = {}
        self._checkpoints: list[Checkpoint] = []
        self._unconfirmed: Checkpoint | None = None

    def keep_batch(self, batch: Stored) -> None:
        known = self._batches.setdefault(batch.first, batch)
        if list(known.records) != list(batch.records) or known.at != batch.at:
            raise Broken("only what is durable", f"offset {batch.first} was one thing and is another now")

    def offer_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._unconfirmed = checkpoint

    def keep_checkpoint(self, pointer: int) -> None:
        """The rows stand at `pointer`: if that is what was offered last, it was saved, confirmed or not."""
        if self._unconfirmed and self._unconfirmed.upto == pointer:
            self._checkpoints.append(self._unconfirmed)
        self._unconfirmed = None

    def check(self, live: State, new_state: Callable[[], State]) -> None:
        """Replay from a random older checkpoint up to where `live` stands, and compare every row."""
        self._world.hit("replay compared")
        rows = MemoryRows()
        saved = [checkpoint for checkpoint in self._checkpoints if checkpoint.upto <= live.offset]
        for checkpoint in saved[: self._world.between(0, len(saved))]:
            rows.save(checkpoint, lambda _: None)
        batches = [self._batches[first] for first in sorted(self._batches)]
        compare_with_replay(live, rows, [batch for batch in batches if batch.last <= live.offset], new_state)


def compare_with_replay(live: State, rows: MemoryRows, batches: list[Stored], new_state: Callable[[], State]) -> None:
    """Fold `batches` from the checkpoint in `rows` on; every row must be as it is live."""
    replayed = Folding(_Recorded(batches), rows, new_state, lambda _: None, _raise, lambda _: None)
    replayed.rebuild()
    again = replayed.state
    if again.offset != live.offset:
        raise Broken("replay gives the same state", f"ends at {again.offset}, live is at {live.offset}")
    if encode_row(live.shard) != encode_row(again.shard):
        raise Broken("replay gives the same state", f"the shard is {again.shard}, live it is {live.shard}")
    for key, row in list(live.known_rows()):
        again.install(key, rows.rows.get(key))
        other = again.row(key)
        if (row and encode_row(row)) != (other and encode_row(other)):
            raise Broken("replay gives the same state", f"{key} is {other}, live it is {row}")


class _Recorded:
    """The durable batches, to be replayed only."""

    def __init__(self, batches: list[Stored]) -> None:
        self._batches = batches
        self.last = batches[-1].last if batches else 0
        self.tight = False
        self.batch_bytes_max = 0

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        raise AssertionError("nothing is appended to a recording")

    def replay(self, after: int) -> Iterator[Stored]:
        return iter([batch for batch in self._batches if batch.last > after])

    def trim(self, upto: int, now: int) -> None: ...

    def close(self) -> None: ...


class ShadowLog:
    def __init__(self, log: Log, shadow: Shadow) -> None:
        self._log, self._shadow = log, shadow

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        def appended(first: int | None) -> None:
            if first is not None:
                self._shadow.keep_batch(Stored(first, at, records))
            done(first)

        self._log.append(at, records, appended)

    @property
    def last(self) -> int:
        return self._log.last

    @property
    def tight(self) -> bool:
        return self._log.tight

    @property
    def batch_bytes_max(self) -> int:
        return self._log.batch_bytes_max

    def replay(self, after: int) -> Iterator[Stored]:
        for batch in self._log.replay(after):
            self._shadow.keep_batch(batch)
            yield batch

    def trim(self, upto: int, now: int) -> None:
        self._log.trim(upto, now)

    def close(self) -> None:
        self._log.close()


class ShadowRows:
    def __init__(self, rows: Rows, shadow: Shadow) -> None:
        self._rows, self._shadow = rows, shadow
        shadow.keep_checkpoint(rows.pointer)

    @property
    def pointer(self) -> int:
        return self._rows.pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        self._rows.load(needs, done)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        def saved(outcome: Overtaken | Failed | None) -> None:
            if outcome is None:
                self._shadow.keep_checkpoint(checkpoint.upto)
            done(outcome)

        self._shadow.offer_checkpoint(checkpoint)
        self._rows.save(checkpoint, saved)

    def recall(self, device: int, since: int) -> Iterator[bytes]:
        return self._rows.recall(device, since)

    def forget(self, before: int) -> None:
        self._rows.forget(before)

    def close(self) -> None:
        self._rows.close()


def _raise(_offset: int, error: Exception) -> None:
    raise error
