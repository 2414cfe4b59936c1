from __future__ import annotations

import json

import pytest

from nightmail.core.schedules import taking
from nightmail.model.refusals import AnyRefusal
from nightmail.model.schedule_rows import Schedule
from sim.runs import schedules
from sim.world.plan import FAULTS, Plan
from sim.world.schedule_plan import run_schedules
from sim.world.world import Broken

MODES = ("node", "cluster")
QUIET = frozenset({*FAULTS, "little room", "expiry"})


def always_open(_schedule: Schedule) -> AnyRefusal | None:
    """What was delivered is cancelled, too: breaks with the first one."""
    return None


@pytest.mark.parametrize("mode", MODES)
def test_a_day_with_schedules_keeps_every_promise_and_is_the_same_every_time(mode: str) -> None:
    plan = Plan(mode, 5, seconds=3)
    first, again = run_schedules(plan), run_schedules(plan)
    assert (first.events, first.sometimes) == (again.events, again.sometimes)
    assert first.sometimes["scheduled"] > 0


def test_a_broken_promise_is_found_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(taking, "_check_open", always_open)
    with pytest.raises(Broken):
        run_schedules(Plan("node", 5, seconds=6, off=QUIET))
    assert schedules.main(["--mode", "node", "--seed", "5", "--seeds", "9", "--seconds", "6"]) == 1
    told, said = capsys.readouterr()
    assert json.loads(told)["broken"]
    assert "again:" in said
