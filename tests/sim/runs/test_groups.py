# pyright: reportPrivateUsage=false
from __future__ import annotations

import json

import pytest

from nightmail.core.groups import filing
from sim.planted.tools import all_of, edit
from sim.runs import groups
from sim.world.group_plan import run_groups
from sim.world.plan import FAULTS, Plan
from sim.world.world import Broken

MODES = ("node", "cluster")
QUIET = frozenset({*FAULTS, "little room", "expiry"})
"""A day on which nothing goes wrong, so that something is delivered, whatever the seed."""


TO_AUTHORS = all_of([edit(walk, "device != by and", "") for walk in (filing._boxes, filing._addressed)])
"""A message goes to its author's device, too: breaks with the first one."""


@pytest.mark.parametrize("mode", MODES)
def test_a_day_with_groups_keeps_every_promise_and_is_the_same_every_time(mode: str) -> None:
    plan = Plan(mode, 5, seconds=3)
    first, again = run_groups(plan), run_groups(plan)
    assert (first.events, first.sometimes) == (again.events, again.sometimes)
    assert first.sometimes["asked twice"] > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_broken_promise_is_found_and_told(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    with TO_AUTHORS():
        with pytest.raises(Broken, match="nobody is sent what they wrote"):
            run_groups(Plan(mode, 5, seconds=3, off=QUIET))
        assert groups.main(["--mode", mode, "--seed", "5", "--seeds", "9", "--seconds", "3"]) == 1
    told, said = capsys.readouterr()
    assert json.loads(told)["broken"] == "nobody is sent what they wrote"
    assert f"again:  .venv/bin/python -m sim.runs.groups --mode {mode} --seed" in said


def test_a_campaign_without_worlds_breaks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert groups.main(["--seeds", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] is None
