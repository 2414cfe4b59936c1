from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nightmail.core.mailbox import offer
from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.core.step import FOLDS
from nightmail.engine.forwarder import Forwarder
from nightmail.model.ids import device_id
from nightmail.model.records import Sent
from sim.planted import BUGS, Bug, Uprooted
from sim.planted.tools import edit, edit_method, in_step, swap
from sim.runs import teeth
from sim.world.plan import Plan, run

SEEDS = {
    "node": 2, "cluster": 1, "sealed": 4, "forged entries": 2, "forged lists": 6, "forged keys": 4, "owners": 20,
    "powercuts": 2, "claims": 2, "groups node": 3, "groups cluster": 1, "schedules node": 2, "schedules cluster": 1,
}  # fmt: skip


def bug(name: str) -> Bug:
    return next(bug for bug in BUGS if bug.name == name)


@pytest.fixture
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teeth, "SEEDS", SEEDS)


@pytest.mark.usefixtures("few_seeds")
@pytest.mark.parametrize("suite", SEEDS)
def test_without_a_planted_bug_a_suite_passes(suite: str) -> None:
    assert teeth.run_suite(suite, seconds=3) == teeth.NOTHING


@pytest.mark.usefixtures("few_seeds")
@pytest.mark.parametrize(
    ("name", "suite"),
    [
        ("needs of Sent miss the stream", "node"),
        ("stale rows are put over changed ones", "cluster"),
        ("read the latest version", "owners"),
        ("SQLite does not sync", "powercuts"),
        ("a claim is answered from memory and not logged", "claims"),
        ("a retry is sealed again", "sealed"),
        ("a MAC is not checked", "forged entries"),
        ("a list's signature is not checked", "forged lists"),
        ("a KEM key's signature is not checked", "forged keys"),
        ("an author in a group gets what it wrote", "groups node"),
        ("a scheduled message fires early", "schedules node"),
    ],
)
def test_a_planted_bug_is_caught_and_the_suite_is_named(name: str, suite: str) -> None:
    verdict = teeth.hunt(bug(name))
    assert (verdict.name, verdict.suite, verdict.seeds > 0, bool(verdict.why)) == (name, suite, True, True)


def test_the_world_that_caught_a_bug_is_sound_without_it() -> None:
    planted = bug("a stamp runs backward")
    verdict = teeth.hunt(planted)
    run(Plan(verdict.suite, verdict.seeds, seconds=planted.seconds))


@pytest.mark.usefixtures("few_seeds")
def test_a_bug_that_shows_nowhere_survives() -> None:
    harmless = Bug("harmless", lambda: swap(offer, offer), ("owners",))
    assert teeth.hunt(harmless).suite == ""


@pytest.mark.usefixtures("few_seeds")
def test_a_bug_that_is_caught_in_a_world_which_breaks_without_it_counts_as_not_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_down(seed: int) -> None:
        raise AssertionError(seed)

    monkeypatch.setattr(teeth, "SEEDED", {"owners": break_down})
    verdict = teeth.hunt(Bug("harmless", lambda: swap(offer, offer), ("owners",)))
    assert (verdict.suite, verdict.why) == ("", "BROKEN WITHOUT IT: AssertionError: 1")


@pytest.mark.parametrize(
    ("suite", "seeds", "is_late"), [("node", 20, False), ("node", 21, True), ("cluster", 1, True), ("", 0, False)]
)
def test_a_bug_is_late_that_does_not_show_in_the_first_third_of_its_likeliest_worlds(
    suite: str, seeds: int, is_late: bool
) -> None:
    verdict = teeth.Verdict("some bug", False, "node", suite, seeds, "", 0, 0)
    assert verdict.is_late is is_late


def _stumble(_step: Step) -> Step:
    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        raise KeyError(sent.id)

    return wrong


@pytest.mark.usefixtures("few_seeds")
def test_a_bug_that_stumbles_over_itself_counts_as_not_caught_unless_it_says_that_this_is_how_it_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(teeth, "PLANTS", Path(__file__))
    stumbling = Bug("stumbling", in_step(Sent, _stumble), ("node",))
    verdict = teeth.hunt(stumbling)
    assert verdict.suite == ""
    assert verdict.why.startswith("STUMBLED: ")
    assert teeth.hunt(replace(stumbling, raises=(KeyError,))).suite == "node"


def test_an_accident_of_the_program_itself_is_none_of_a_plant() -> None:
    with pytest.raises(TypeError) as caught:
        device_id("x", 1)  # pyright: ignore[reportArgumentType]
    assert not teeth.is_accident(caught.value)


@pytest.mark.parametrize("planted", BUGS, ids=lambda planted: planted.name)
def test_every_bug_finds_its_place_and_leaves_it_as_it_was(planted: Bug) -> None:
    before = {version: dict(fold) for version, fold in FOLDS.items()}
    with planted.plant():
        pass
    assert before == FOLDS


def test_a_bug_without_a_place_is_told() -> None:
    with pytest.raises(Uprooted, match="0 times"):
        edit_method(Forwarder, "_send", "no such text", "")()
    with pytest.raises(Uprooted, match="has no gone"):
        edit_method(Forwarder, "gone", "", "")()
    with pytest.raises(Uprooted, match="offer has 'offered'"):  # more than once: which one is meant?
        edit(offer, "offered", "anything")()
    with pytest.raises(Uprooted, match="nobody refers"), swap(lambda: None, offer):
        pass


def test_names_are_unique_and_there_are_enough() -> None:
    names = {bug.name for bug in BUGS}
    assert len(names) == len(BUGS) >= 30
