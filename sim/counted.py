"""Rows, with a count of how often somebody else turned out to be further. Changes nothing that passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken, Rows

from .world import World


class CountedRows:
    def __init__(self, rows: Rows, world: World) -> None:
        self._rows, self._world = rows, world

    @property
    def pointer(self) -> int:
        return self._rows.pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        def loaded(found: Found | Overtaken | Failed) -> None:
            self._count(found)
            done(found)

        self._rows.load(needs, loaded)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        def saved(outcome: Overtaken | Failed | None) -> None:
            self._count(outcome)
            done(outcome)

        self._rows.save(checkpoint, saved)

    def _count(self, outcome: object) -> None:
        if isinstance(outcome, Overtaken):
            self._world.hit("overtaken")

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        return self._rows.recall(devices, since)

    def forget(self, before: int) -> None:
        self._rows.forget(before)

    def close(self) -> None:
        self._rows.close()
