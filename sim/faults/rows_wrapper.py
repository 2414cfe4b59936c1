"""Rows that stand in front of other rows: a subclass changes one call and passes on the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Generic, TypeVar

from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken, Rows

R = TypeVar("R", bound=Rows)


class RowsWrapper(Generic[R]):
    """`Rows` that pass every call to `rows`."""

    def __init__(self, rows: R) -> None:
        self.rows = rows

    @property
    def pointer(self) -> int:
        return self.rows.pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        self.rows.load(needs, done)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        self.rows.save(checkpoint, done)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        self.rows.load_forwards(shard, after, upto, limit, done)

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        self.rows.drop_forwards(shard, upto, done)

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        return self.rows.recall(devices, since)

    def forget(self, before: int) -> None:
        self.rows.forget(before)

    def close(self) -> None:
        self.rows.close()
