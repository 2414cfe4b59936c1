from __future__ import annotations

import pytest

from nightmail.engine.cluster.wide import WideRows
from sim.runs.owners import PLANTED, Broken, Tally, run

RUNS = 2_000


def test_every_load_is_right_as_of_its_pointer_or_overtaken() -> None:
    total = Tally()
    for seed in range(RUNS):
        try:
            tally = run(seed)
        except Broken as error:
            error.add_note(f"python -m sim.runs.owners --runs 1 --seed {seed}")
            raise
        total.loads += tally.loads
        total.saves += tally.saves
        total.overtaken += tally.overtaken
        total.failed += tally.failed
    assert min(total.loads, total.saves, total.overtaken, total.failed) > RUNS


@pytest.mark.parametrize("mistake", PLANTED)
def test_each_planted_mistake_is_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, method in PLANTED[mistake].items():
        monkeypatch.setattr(WideRows, name, method)
    with pytest.raises(Broken):
        _ = [run(seed) for seed in range(RUNS)]


def test_the_same_seed_is_the_same_run() -> None:
    assert [run(seed) for seed in range(20)] == [run(seed) for seed in range(20)]
