"""Rows, with a count of how often another owner turned out to be further. Changes nothing that passes."""

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

    def _count(self, outcome: object) -> None:
        if isinstance(outcome, Overtaken):
            self._world.hit("overtaken")
