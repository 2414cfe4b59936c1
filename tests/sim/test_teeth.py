from __future__ import annotations

import pytest

from sim.plan import Plan, run
from sim.planted import BUGS
from sim.planted.tools import Uprooted, edit_method
from sim.teeth import hunt


def test_there_are_enough_planted_bugs_and_each_has_a_name_of_its_own() -> None:
    assert len(BUGS) >= 25
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bug.suites for bug in BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_still_finds_its_place_and_leaves_no_trace(bug: object) -> None:
    with bug.plant():  # pyright: ignore[reportAttributeAccessIssue]
        pass
    run(Plan("node", 1, people=2, seconds=0.2))


def test_a_planted_bug_is_caught_and_the_same_world_is_sound_without_it() -> None:
    bug = next(bug for bug in BUGS if "stamp" in bug.name)
    verdict = hunt(bug, with_tests=False)
    assert verdict.suite in bug.suites
    run(Plan(verdict.suite, verdict.seeds, seconds=bug.seconds))


def test_a_bug_whose_place_is_gone_says_so() -> None:
    with pytest.raises(Uprooted), edit_method(Plan, "command", "no such text", "anything")():
        pass
