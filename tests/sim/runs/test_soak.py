from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise

import pytest

from sim.runs import soak
from sim.runs.powercuts import LIVES
from sim.runs.soak import Done, Job, Tally, jobs, tell, work
from sim.world.plan import Plan
from sim.world.world import Broken, World

SHORT = [Job("node", 3, 0.5), Job("cluster", 3, 0.5), Job("powercuts", 3, 0.5), Job("node", 4, 0.5)]


def run_here(todo: list[Job]) -> tuple[Tally, list[Job]]:
    """With a worker in this process, so that it sees what is planted; and what was not begun."""
    tally, rest = Tally(), iter(todo)
    with ThreadPoolExecutor(1) as pool:
        soak.soak(pool, 1, rest, tally)
    return tally, list(rest)


def breaks_at(seed: int) -> Callable[[Plan], World]:
    def run(plan: Plan) -> World:
        world = World(plan.seed)
        if plan.seed == seed:
            world.tell("node", "forgets a message")
            broken = Broken("nothing lost", "m1 is gone")
            broken.world, broken.story = world, list(world.story)
            raise broken
        return world

    return run


def test_a_seed_is_lived_through_in_both_modes_and_power_is_cut_in_between() -> None:
    assert [(job.kind, job.seed) for job in islice(jobs(7, 20), 6)] == [
        ("node", 7),
        ("cluster", 7),
        ("powercuts", 7 * soak.CUTS),
        ("node", 8),
        ("cluster", 8),
        ("node", 9),
    ]


def test_no_power_cut_is_repeated() -> None:
    cases = [job.seed for job in islice(jobs(7, 20), 100) if job.kind == "powercuts"]
    assert min(b - a for a, b in pairwise(cases)) >= soak.CUTS


def test_what_was_done_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "CUTS", 8)
    tally, rest = run_here(SHORT)
    assert (rest, tally.failed) == ([], None)
    assert tally.seeds == {"node": 2, "cluster": 1, "powercuts": 1}
    assert 8 <= tally.cuts < 8 + LIVES
    assert tally.events == sum(work(job).events for job in SHORT)


def test_the_first_failure_ends_it_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "run", breaks_at(4))
    tally, rest = run_here([Job("node", 3), Job("cluster", 4), Job("node", 5)])
    assert rest == [Job("node", 5)]
    outcome = tally.outcome()
    assert (outcome["failed_mode"], outcome["failed_seed"], outcome["broken"]) == ("cluster", 4, "nothing lost")
    assert (outcome["lost"], outcome["doubled"]) == (1, 0)


def test_a_crash_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(plan: Plan) -> World:
        raise TypeError(plan.mode)

    monkeypatch.setattr(soak, "run", crash)
    tally, rest = run_here([Job("node", 3), Job("node", 4)])
    assert rest == [Job("node", 4)]
    assert (tally.outcome()["broken"], tally.outcome()["failed_seed"]) == ("nothing crashes", 3)


def test_a_failure_that_does_not_come_again_is_told_with_the_story_it_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "run", breaks_at(4))
    failed = work(Job("cluster", 4))
    monkeypatch.setattr(soak, "run", breaks_at(0))
    tell(failed)
    told = capsys.readouterr().err
    assert "BROKEN nothing lost: m1 is gone" in told
    assert f"again:  {failed.job.plan.command()}\n" in told
    assert "did not break again" in told
    assert told.endswith("forgets a message\n")


def test_a_failed_power_cut_is_told_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Done(Job("powercuts", 9), broken="Lost: x\nalone: python -m sim.runs.powercuts --seed 9 --cuts 1"))
    assert "python -m sim.runs.powercuts --seed 9 --cuts 1" in capsys.readouterr().err


def test_it_ends_with_json_after_so_many_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    code = soak.main(["--minutes", "0.001", "--workers", "1", "--seconds", "0.5"])
    outcome = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    assert (outcome["campaign"], outcome["lost"], outcome["doubled"], outcome["broken"]) == ("soak", 0, 0, None)


def test_ctrl_c_ends_it_cleanly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(soak, "soak", interrupted)
    assert soak.main(["--workers", "1"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["seeds"] == 0
