from __future__ import annotations

import json
from collections import Counter

import pytest

from nightmail.core.schedules import taking
from sim.planted.tools import edit
from sim.runs import schedule_clients
from sim.runs.client_campaign import ENOUGH, never_happened
from sim.runs.schedule_clients import plan_of
from sim.world.plan import run

SEEDS = (("node", 6), ("node", 10), ("cluster", 1))
QUIET = "power,kills,stops,errors,full,slow,pressure"


@pytest.mark.parametrize(("mode", "seed"), SEEDS)
def test_sealed_devices_that_schedule_keep_every_promise_and_the_story_is_the_same_every_time(
    mode: str, seed: int
) -> None:
    plan = plan_of(mode, seed, seconds=5)
    first, again = run(plan), run(plan)
    assert (first.events, first.sometimes) == (again.events, again.sometimes)
    assert first.sometimes["scheduled"]


def test_a_cancel_that_the_server_only_confirms_is_found_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    right = "end(state, account, serial, schedule, ScheduleState.CANCELLED)"
    plant = edit(taking.step_cancelled, right, "pass")
    with plant():
        assert schedule_clients.main(["--seeds", "5", "--seconds", "8", "--off", QUIET]) == 1
    told, said = capsys.readouterr()
    assert json.loads(told)["broken"] == "never after a cancel"
    assert "again:  .venv/bin/python -m sim.runs.schedule_clients --mode node --seed" in said


def test_a_campaign_in_which_something_never_happened_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert schedule_clients.main(["--seeds", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] is None
    assert "scheduled" in never_happened(schedule_clients.MUST_HAPPEN, ENOUGH, Counter())
