"""Rows over a simulated store as a caller would like them: every answer is waited for, every failure tried again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from random import Random

from nightmail.engine.cluster.wide import Outcome, WideRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken
from sim.owners import Schedule
from sim.widestore import Faults, SimWideStore

BAD = Faults(refuses=0.1, times_out=0.1, repeats=0.2, slow_ms=20, late_ms=200, skew=3)


def at_once(_delay_ms: int, job: Callable[[], None]) -> None:
    job()


def calm_rows(shard: int = 0) -> WideRows:
    return WideRows(SimWideStore(Random(1), at_once), shard, 0)


class PatientRows:
    def __init__(self, seed: int, faults: Faults = BAD, *, resurrects: bool = False) -> None:
        self._schedule = Schedule()
        self._rows = WideRows(SimWideStore(Random(seed), self._schedule.later, faults, resurrects=resurrects), 0, 0)

    @property
    def pointer(self) -> int:
        return self._rows.pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        answers: list[Found | Overtaken | Failed] = []
        self._rows.load(needs, answers.append)
        self._schedule.run()
        (found,) = answers
        if isinstance(found, Failed):
            self.load(needs, done)
        else:
            done(found)

    def save(self, checkpoint: Checkpoint, done: Callable[[Outcome], None]) -> None:
        outcomes: list[Outcome] = []
        self._rows.save(checkpoint, outcomes.append)
        self._schedule.run()
        (outcome,) = outcomes
        if isinstance(outcome, Failed):
            self.save(checkpoint, done)
            return
        while self._rows.owing:
            self._rows.trim()
            self._schedule.run()
        done(outcome)

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        return self._rows.recall(devices, since)

    def forget(self, before: int) -> None:
        self._rows.forget(before)

    def close(self) -> None:
        self._rows.close()
