"""Rows, with a count of what other owners did: they were further, or left forwards. Changes nothing that passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken, Rows
from sim.world.world import World

from .rows_wrapper import RowsWrapper


class CountedRows(RowsWrapper[Rows]):
    def __init__(self, rows: Rows, world: World) -> None:
        super().__init__(rows)
        self._world = world

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        def loaded(found: Found | Overtaken | Failed) -> None:
            self._count(found)
            done(found)

        self.rows.load(needs, loaded)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        def saved(outcome: Overtaken | Failed | None) -> None:
            self._count(outcome)
            done(outcome)

        self.rows.save(checkpoint, saved)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        def loaded(found: Sequence[tuple[int, bytes]] | Failed) -> None:
            if found and not isinstance(found, Failed):
                self._world.hit("saved forwards read back" if after else "saved forwards found")
            done(found)

        self.rows.load_forwards(shard, after, upto, limit, loaded)

    def _count(self, outcome: object) -> None:
        if isinstance(outcome, Overtaken):
            self._world.hit("overtaken")
