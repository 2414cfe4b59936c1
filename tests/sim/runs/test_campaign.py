from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from nightmail.core.mailbox import offer
from nightmail.core.state import ShardState
from nightmail.engine import desk
from nightmail.model.rows import Entry, Gap
from nightmail.model.words import Lane
from sim.runs import campaign
from sim.runs.campaign import tell_failure
from sim.world.plan import FAULTS, Plan, run, shrink
from sim.world.world import Broken, World

MODES = ("node", "cluster")
QUIET = frozenset(FAULTS)
"""A day on which nothing goes wrong, so that something is delivered, whatever the seed."""

TELL = """
import sys
from hashlib import sha256
from sim.world.plan import Plan, run
world = run(Plan(sys.argv[1], 3, seconds=2, sealed=sys.argv[2] == "sealed"))
print(world.events, sha256("\\n".join(world.story).encode()).hexdigest(), sorted(world.sometimes.items()))
"""


def miscounted(state: ShardState, device: int, lane: Lane, after: int, most: int) -> list[tuple[int, Entry] | Gap]:
    """Numbers that begin at 2: breaks with the first entry that reaches anybody."""
    items = offer(state, device, lane, after, most)
    return [item if isinstance(item, Gap) else (item[0] + 1, item[1]) for item in items]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "offer", miscounted)


def broken_by(plan: Plan) -> Broken:
    with pytest.raises(Broken) as caught:
        run(plan)
    return caught.value


def a_plan_that_breaks(plan: Plan) -> Plan:
    """The same with the first seed in whose world anything is handed out in this way: not all get so far."""
    for seed in range(1, 30):
        plan = replace(plan, seed=seed)
        try:
            run(plan)
        except Broken:
            return plan
    raise AssertionError("no seed breaks")


def evidence(world: World) -> tuple[object, ...]:
    return world.events, world.now, list(world.story), world.sometimes


# --- one seed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_one_seed_is_one_story_whatever_ran_before(mode: str, sealed: bool) -> None:
    plan = Plan(mode, 3, seconds=2, sealed=sealed)
    first = evidence(run(plan))
    run(Plan(mode, 4, people=2, seconds=1))
    assert evidence(run(plan)) == first


@pytest.mark.parametrize("kind", ["opaque", "sealed"])
@pytest.mark.parametrize("mode", MODES)
def test_one_seed_is_one_story_in_every_process(mode: str, kind: str) -> None:
    """A worker's failure must be seen again by running its command."""

    def told(hash_seed: str) -> str:
        surroundings = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", TELL, mode, kind]
        return subprocess.run(command, env=surroundings, check=True, capture_output=True, text=True).stdout

    assert told("1") == told("2")


@pytest.mark.parametrize("mode", MODES)
def test_another_seed_is_another_story(mode: str) -> None:
    assert run(Plan(mode, 3, seconds=1)).story != run(Plan(mode, 4, seconds=1)).story


# --- a failure --------------------------------------------------------------------------------


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("mode", MODES)
def test_a_broken_promise_brings_its_world_and_its_story(mode: str) -> None:
    plan = a_plan_that_breaks(Plan(mode, 1, seconds=5, off=QUIET))
    broken = broken_by(plan)
    assert broken.promise == "gap-free"
    assert broken.world is not None
    assert broken.world.seed == plan.seed
    assert "gap-free" in broken.world.story[-1]


@pytest.mark.usefixtures("planted")
def test_a_failure_is_shrunk_to_a_smaller_plan_that_breaks_the_same_promise() -> None:
    plan = a_plan_that_breaks(Plan("node", 1, seconds=5, off=QUIET))
    promise = broken_by(plan).promise
    smaller, shorter = shrink(plan, promise, tries=12)
    assert shorter is not None
    assert shorter.promise == promise
    assert (smaller.seconds, -len(smaller.off)) < (plan.seconds, -len(plan.off))
    again = broken_by(smaller)
    assert again.world
    assert shorter.world
    assert evidence(again.world) == evidence(shorter.world)


def test_a_plan_that_breaks_nothing_is_not_shrunk() -> None:
    plan = Plan("node", 3, people=2, seconds=0.5)
    assert shrink(plan, "nothing lost", tries=2) == (plan, None)


@pytest.mark.usefixtures("planted")
def test_a_failure_is_told_with_the_command_that_shows_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    plan = a_plan_that_breaks(Plan("node", 1, people=2, seconds=5, off=QUIET | {"crash"}))
    broken = broken_by(plan)
    tell_failure(plan, broken, may_shrink=False)
    told = capsys.readouterr().err
    assert f"BROKEN {broken}" in told
    assert f"again:  {plan.command()}" in told
    assert broken.world is not None
    assert told.endswith(f"{broken.world.story[-1]}\n")


@pytest.mark.parametrize(
    "plan",
    [
        *(Plan(mode, 3, seconds=seconds) for mode in MODES for seconds in (Plan.seconds, *campaign.SECONDS.values())),
        Plan("node", 4, sealed=True),
        Plan("node", 4),
        Plan("cluster", 17, people=2, seconds=20 * 0.8**9, off=frozenset({"power", "crash"})),
    ],
)
def test_the_command_of_a_plan_asks_for_that_plan(plan: Plan) -> None:
    python, *arguments = plan.command().split()
    assert (python, *arguments[:2]) == (".venv/bin/python", "-m", "sim.runs.campaign")
    assert list(campaign.plans(campaign.parse(arguments[2:]))) == [plan]


# --- the campaign -----------------------------------------------------------------------------


@pytest.fixture
def campaign_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    def start(*arguments: str) -> tuple[int, dict[str, object]]:
        code = campaign.main(arguments)
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    return start


def test_a_clean_campaign_ends_with_zeros(campaign_of: Callable[..., tuple[int, dict[str, object]]]) -> None:
    code, outcome = campaign_of("--mode", "cluster", "--seeds", "2", "--seconds", "1")
    assert code == 0
    assert (outcome["seeds"], outcome["lost"], outcome["doubled"], outcome["reordered"]) == (2, 0, 0, 0)
    assert outcome["broken"] is None


@pytest.mark.parametrize(("how", "sealed"), [((), 1), (("--sealed",), 4), (("--opaque",), 0)])
def test_every_fourth_world_is_sealed_unless_somebody_says_otherwise(
    campaign_of: Callable[..., tuple[int, dict[str, object]]], how: tuple[str, ...], sealed: int
) -> None:
    code, outcome = campaign_of("--seeds", "4", "--seconds", "0.5", *how)
    assert (code, outcome["seeds"], outcome["sealed"]) == (0, 4, sealed)


def test_what_never_happened_is_named_once_there_were_enough_worlds() -> None:
    happened = Counter([*campaign.must_happen("node", 100), *campaign.SEALED_MUST_HAPPEN, *campaign.SEALED_ON_A_NODE])
    none = Counter[str]()
    assert campaign.never_happened("node", 75, happened, 25, none) == []
    assert campaign.never_happened("node", 0, none, 99, none) == []
    assert "sealed: key changed" in campaign.never_happened("node", 300, happened, 100, none)
    assert campaign.never_happened("node", 300, happened, 100, happened) == []
    assert "killed" in campaign.never_happened("node", 75, none, 25, none)


def test_what_is_rare_is_expected_only_of_many_worlds() -> None:
    few, many, most = (set(campaign.must_happen("cluster", worlds)) for worlds in (25, 100, 200))
    assert campaign.must_happen("cluster", 24) == []
    assert "zombie forwarded" in few < many < most
    assert "append lost its first and kept the rest" in many - few
    assert "expiry met an ack" in most - many


@pytest.mark.usefixtures("planted")
def test_a_broken_campaign_names_its_seed(campaign_of: Callable[..., tuple[int, dict[str, object]]]) -> None:
    code, outcome = campaign_of("--seed", "3", "--seeds", "2", "--off", ",".join(FAULTS), "--no-shrink")
    assert code == 1
    assert (outcome["failed_seed"], outcome["broken"]) == (3, "gap-free")
