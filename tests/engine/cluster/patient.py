"""Rows over a simulated store as a caller would like them: it waits for every answer and retries every failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from nightmail.engine.cluster.wide import Outcome, WideRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken
from sim.faults.rows_wrapper import RowsWrapper
from sim.faults.wide_store import Faults, SimWideStore
from sim.runs.owners import Schedule

BAD = Faults(refuses=0.1, times_out=0.1, repeats=0.2, slow_ms=20, late_ms=200, skew=3)


def at_once(_delay_ms: int, job: Callable[[], None]) -> None:
    job()


def calm_rows(shard: int = 0) -> WideRows:
    return WideRows(SimWideStore(Random(1), at_once), shard, 0)


class PatientRows(RowsWrapper[WideRows]):
    def __init__(self, seed: int, faults: Faults = BAD, *, resurrects: bool = False) -> None:
        self._schedule = Schedule()
        store = SimWideStore(Random(seed), self._schedule.later, faults, resurrects=resurrects)
        super().__init__(WideRows(store, 0, 0))

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        answers: list[Found | Overtaken | Failed] = []
        self.rows.load(needs, answers.append)
        self._schedule.run()
        (found,) = answers
        if isinstance(found, Failed):
            self.load(needs, done)
        else:
            done(found)

    def save(self, checkpoint: Checkpoint, done: Callable[[Outcome], None]) -> None:
        outcomes: list[Outcome] = []
        self.rows.save(checkpoint, outcomes.append)
        self._schedule.run()
        (outcome,) = outcomes
        if isinstance(outcome, Failed):
            self.save(checkpoint, done)
            return
        while self.rows.owing:
            self.rows.trim()
            self._schedule.run()
        done(outcome)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        answers: list[Sequence[tuple[int, bytes]] | Failed] = []
        self.rows.load_forwards(shard, after, upto, limit, answers.append)
        self._schedule.run()
        (found,) = answers
        if isinstance(found, Failed):
            self.load_forwards(shard, after, upto, limit, done)
        else:
            done(found)

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        answers: list[Failed | None] = []
        self.rows.drop_forwards(shard, upto, answers.append)
        self._schedule.run()
        (answer,) = answers
        if answer:
            self.drop_forwards(shard, upto, done)
        else:
            done(None)
