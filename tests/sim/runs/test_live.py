from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from rich.console import Console

from nightmail.model.ids import account_id, device_id
from nightmail.model.words import Lane, Reason
from sim.judges.history import History, Message
from sim.runs import live
from sim.runs.live import Interrupt, Lines, Picture, Stopped, plans_of, show_days
from sim.runs.scene import SLICE_MS, Scene, Tick, Ticks, Watched, places, tick_of
from sim.runs.view import Score, clock, draw
from sim.world.plan import Machine, Plan, run
from sim.world.town import Town
from sim.world.world import SAME_FAULT_MS, Broken, Fault, World

MODES = ("node", "cluster")
ADA, BOB = account_id("ada"), account_id("bob")
PHONE, LAPTOP = device_id(BOB, 1), device_id(BOB, 2)
OWN_LAPTOP = device_id(ADA, 2)


def now_and_then(scene: Scene) -> bool:
    return scene.world.elapsed_ms % 500 < SLICE_MS


def watched() -> Watched:
    return Watched(1, lambda: None)


# --- watching ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_world_that_is_watched_lives_the_same_story(mode: str) -> None:
    plan = Plan(mode, 5, seconds=2)
    alone = run(plan)

    def look(scene: Scene) -> None:
        scene.refresh()
        if now_and_then(scene):
            draw(scene, Score(), 1, 120, 40)

    scene = Scene(1, plan, look)
    run(plan, scene.world, scene.open)
    assert (scene.world.events, scene.world.story) == (alone.events, alone.story)
    assert scene.world.sometimes == alone.sometimes


def test_a_fault_that_comes_again_soon_is_counted_and_later_listed_again() -> None:
    world = watched()
    for _ in range(3):
        world.hit("write failed")
    world.tell("node", "loses power")
    world.run_until(world.now + SAME_FAULT_MS)
    world.hit("write failed")
    assert list(world.faults) == [
        Fault(0, "disk", "fails a write", 3),
        Fault(0, "node", "loses power"),
        Fault(SAME_FAULT_MS, "disk", "fails a write"),
    ]


def test_what_people_write_is_no_fault() -> None:
    world = watched()
    world.tell("ada.1", "writes m1 to 7 as NORMAL 1")
    world.hit("ack lost")
    assert list(world.faults) == []


# --- ticks ------------------------------------------------------------------------------------


def a_message(history: History, fate: str = "sent", n: int = 1) -> Message:
    message = Message(f"m{n}", device_id(ADA, 1), BOB, Lane.NORMAL, n, None, 0)
    message.envelopes[1] = frozenset({PHONE, LAPTOP})
    message.version, message.fate = 1, fate
    history.add(message)
    return message


@pytest.mark.parametrize(
    ("fate", "tick"),
    [
        ("waiting", (Tick.WAITING, "")),
        ("sent", (Tick.SENT, "")),
        ("voided", (Tick.WITHDRAWN, "")),
        ("unknown recipient", (Tick.FAILED, "unknown recipient")),
    ],
)
def test_a_message_has_the_tick_of_its_fate(fate: str, tick: tuple[Tick, str]) -> None:
    history = History(World(1))
    assert tick_of(history, a_message(history, fate)) == tick


def test_the_first_device_decides_when_a_message_is_delivered_and_read() -> None:
    history = History(World(1))
    message = a_message(history)
    seen, key = history.of(message.by), (message.by, BOB, Lane.NORMAL, 1)
    seen.failed_at[key] = {PHONE: Reason.MAILBOX_FULL}
    seen.delivered_at[key] = {LAPTOP}
    assert tick_of(history, message) == (Tick.DELIVERED, "")
    seen.read_at[key] = {LAPTOP}
    assert tick_of(history, message) == (Tick.READ, "")


def test_a_message_has_failed_when_no_device_got_it() -> None:
    history = History(World(1))
    message = a_message(history)
    failed = history.of(message.by).failed_at[message.by, BOB, Lane.NORMAL, 1] = {PHONE: Reason.EXPIRED}
    assert tick_of(history, message) == (Tick.SENT, "")
    failed[LAPTOP] = Reason.EXPIRED
    assert tick_of(history, message) == (Tick.FAILED, "expired")


def test_copies_for_ones_own_devices_change_no_tick() -> None:
    history = History(World(1))
    message = a_message(history)
    history.of(message.by).delivered_at[message.by, BOB, Lane.NORMAL, 1] = {OWN_LAPTOP}
    assert tick_of(history, message) == (Tick.SENT, "")


def test_a_message_is_followed_until_some_time_after_its_last_tick() -> None:
    history = History(World(1))
    ticks = Ticks(history)
    first = a_message(history, "waiting")
    ticks.look(0)
    assert ticks.followed == [(first, Tick.WAITING, "")]
    first.fate = "voided"
    ticks.look(1_000)
    assert (ticks.followed, ticks.counts) == ([(first, Tick.WITHDRAWN, "")], {Tick.WITHDRAWN: 1})
    second = a_message(history, n=2)
    ticks.look(1_001 + Ticks.STAYS_MS)
    assert (ticks.followed, ticks.counts) == ([(second, Tick.SENT, "")], {Tick.WITHDRAWN: 1, Tick.SENT: 1})


# --- the picture ------------------------------------------------------------------------------


def seed_of_a_large_cluster() -> int:
    """The first whose shards do not all fit into a small terminal."""

    def judge(_: Town, machine: Machine) -> None:
        raise Stopped(len(places(machine)))

    for seed in count(1):
        with pytest.raises(Stopped) as caught:
            run(Plan("cluster", seed), watch=judge)
        if caught.value.args[0] > 10:
            return seed
    raise AssertionError


@pytest.mark.parametrize("size", [(80, 24), (110, 30), (200, 60)])
@pytest.mark.parametrize("mode", MODES)
def test_every_frame_fits_its_terminal(mode: str, size: tuple[int, int]) -> None:
    width, height = size
    console = Console(width=width, height=height, force_terminal=True)
    tallest = 0

    def look(scene: Scene) -> None:
        nonlocal tallest
        scene.refresh()
        if now_and_then(scene):
            lines = console.render_lines(draw(scene, Score(), 5, width, height))
            tallest = max(tallest, len(lines))

    plan = Plan(mode, 5 if mode == "node" else seed_of_a_large_cluster(), people=4, seconds=1)
    scene = Scene(1, plan, look)
    run(plan, scene.world, scene.open)
    assert 10 < tallest <= height


def test_a_node_that_is_down_is_shown_as_down() -> None:
    seen: set[str] = set()
    plan = Plan("node", 5, seconds=1)
    scene = Scene(1, plan, lambda scene: seen.update(place.state for place in places(scene.machine)))
    run(plan, scene.world, scene.open)
    assert "up" in seen
    machine = scene.machine
    machine.loop = None  # pyright: ignore[reportAttributeAccessIssue]
    assert [place.state for place in places(machine)] == ["down"]


def test_one_moment_is_one_picture(tmp_path: Path) -> None:
    pictures: list[str] = []
    for name in ("a.svg", "b.svg"):
        score = Score()
        assert show_days([Plan("cluster", 5, seconds=1)], Picture(tmp_path / name, score, 1), score) is None
        assert score.days == 0
        pictures.append((tmp_path / name).read_text())
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith("<svg")
    assert "https://cdn" not in pictures[0]


def test_a_picture_shows_a_world_that_has_judged_something(tmp_path: Path) -> None:
    score = Score()
    plans = [Plan("node", seed, seconds=1) for seed in (5, 6)]
    assert show_days(plans, Picture(tmp_path / "a.svg", score, 2), score) is None
    assert (score.days, "1&#160;day&#160;judged" in (tmp_path / "a.svg").read_text()) == (1, True)


def test_a_clock_reads_minutes_and_seconds() -> None:
    assert [clock(0), clock(9_940), clock(61_250)] == ["00:00.0", "00:09.9", "01:01.2"]


# --- days -------------------------------------------------------------------------------------


def test_days_alternate_between_one_node_and_a_cluster() -> None:
    assert list(plans_of("", 7, 60, 3)) == [
        Plan("node", 7, seconds=60),
        Plan("cluster", 8, seconds=60),
        Plan("node", 9, seconds=60),
    ]
    assert {plan.mode for plan in plans_of("cluster", 7, 60, 3)} == {"cluster"}


def test_without_a_terminal_one_day_is_told_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert live.main(["--seconds", "1", "--days", "2", "--seed", "5"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Nightmail")
    assert "make test" in told
    assert "make sim" in told
    assert "day 1 (one node, seed 5): everything that was sent was shown exactly once, in order, or" in told
    assert "day 2 (a cluster, seed 6): everything that was sent was shown exactly once, in order, or" in told
    assert told.splitlines()[-1].startswith("2 days judged, ")
    assert told.splitlines()[-1].endswith("lost 0, doubled 0")


def test_an_interrupt_ends_the_show_without_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    score, interrupt = Score(), Interrupt()
    interrupt.asked = True
    assert show_days([Plan("node", 5, seconds=1)], Lines(interrupt), score) is None
    assert score.days == 0
    assert capsys.readouterr().out.startswith("day 1 (one node, seed 5): not judged")


def test_a_broken_promise_ends_the_show_and_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose(*_: object) -> None:
        broken = Broken("nothing lost", "m1 is gone")
        broken.world = World(5)
        raise broken

    monkeypatch.setattr(live, "run", lose)
    assert live.main(["--seed", "5"]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1].endswith("lost 1, doubled 0, BROKEN: nothing lost")
    assert "python -m sim.runs.campaign --mode node --seed 5" in told.err
