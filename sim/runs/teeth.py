"""Plant bugs, one at a time, and see that each is caught.

    python -m sim.runs.teeth
    python -m sim.runs.teeth --only stamp,ring --tests

Every bug runs in a process of its own: the simulations that must notice it, seed by seed, until one
breaks; with `--tests` also the ordinary tests that may, which decides nothing. A bug that no simulation
catches fails the command, and so does one that only trips over itself (a TypeError in what was planted),
or is caught in a world that breaks without it, too. One that shows in few worlds is named: a small change
of the program may hide it. The last line on standard output is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from unittest import mock

import pytest
from msgspec import structs

from sim.planted import BUGS, Bug, Uprooted
from sim.planted.tools import PLANTED_IN, Focus
from sim.world import group_town, town
from sim.world.group_plan import run_groups
from sim.world.plan import FAULTS, HABITS, Plan, run
from sim.world.push_plan import run_pushes
from sim.world.schedule_plan import run_schedules

from . import (
    backups,
    claims,
    clocks,
    files,
    group_clients,
    handles,
    media,
    owners,
    powercuts,
    presence,
    schedule_clients,
)

ROOT = Path(__file__).parent.parent.parent
WORKERS = 2
HEALING_MS = 150_000
"""Longer than a stale scheduled message waits for somebody who seals it again."""
STUCK_SECONDS = 20
"""A world that computes for this long stands still: of CPU time, so that a busy machine stops no sound world."""
SEEDS = {
    "node": 60, "cluster": 300, "sealed": 150, "forged entries": 60, "forged lists": 60, "forged keys": 60,
    "owners": 2_000, "powercuts": 6_000, "claims": 30, "clocks": 120, "handles": 60, "presence": 60, "backups": 60,
    "media": 60, "files": 60, "groups node": 150, "groups cluster": 300, "group clients": 60,
    "tests of group clients": 1, "schedules node": 100, "schedules cluster": 200, "pushes node": 150,
    "pushes cluster": 200, "schedule clients": 60, "tests of schedule clients": 1, "tests of blobs": 1,
    "tests of schedules": 1,
}  # fmt: skip
"""The most that are tried."""
CLAIMS = 3_000
"""In one case."""
SAFE = frozenset({"power", "full", "errors", "slow", "little room", "expiry"})
"""Faults that only make a story with groups shorter."""
QUIET = frozenset({*FAULTS, "forge_entries", "forge_lists", "forge_keys", "set_back", "unreadable"})
"""Of a day with groups: what would excuse that something does not open."""
HONEST = frozenset(habit for habit in HABITS if habit.startswith("forge_"))
FORGED = {
    "forged entries": ("forge_entries", 0.15, ()),
    "forged lists": ("forge_lists", 0.1, ()),
    # A device that is linked with a forged key waits for its account silently: it could not show what is wrong.
    "forged keys": ("forge_keys", 0.5, ("link",)),
}
"""What the server of a suite lies about, how often, and what does not happen there. It lies about one thing, because
a refused list or key keeps a device from sending what could be forged next."""
ACCIDENTS = (TypeError, AttributeError, NameError, KeyError, struct.error)
"""How a plant shows that does not fit the program any more."""
GROUP_CLIENTS = ("tests/client/groups",)
"""What stands for a simulation of clients in groups: the towns of these tests fold for real."""
SCHEDULE_CLIENTS = ("tests/client/schedules",)
"""Likewise, of clients that schedule messages."""
SCHEDULES = ("tests/core/schedules",)
"""Likewise, of what takes longer than any world lives."""
BLOBS = (
    "tests/api/media/test_media.py", "tests/engine/blobs/test_folder.py", "tests/client/backup/test_server_copy.py",
    "tests/client/own_devices/test_backup_sync.py", "tests/client/media/test_saved_file.py",
)  # fmt: skip
"""Likewise, of uploads and of backups on a server: real servers, connections that break at every step, and a server
that lies."""
PLANTS = ROOT / "sim" / "planted"
NOTHING = None, 0


@dataclass(frozen=True)
class Verdict:
    name: str
    tests: bool
    """Whether an ordinary test noticed it."""
    likeliest: str
    """The first simulation that was asked."""
    suite: str
    """The one that caught it; empty: none did."""
    seeds: int
    why: str
    sim_seconds: float
    """Of CPU time, so that a busy machine makes no difference."""
    test_seconds: float

    @property
    def is_late(self) -> bool:
        """Whether it was caught, but not within the first third of the seeds of its likeliest suite."""
        return bool(self.suite) and (self.suite != self.likeliest or self.seeds > max(1, SEEDS[self.suite] // 3))


# --- the suites: how it broke, and after how many seeds -----------------------------------------


def run_suite(
    suite: str, seconds: float, focus: Focus | None = None, after: int = 0
) -> tuple[BaseException | None, int]:
    try_one = worlds_of(suite, seconds, focus)
    for seed in range(after + 1, SEEDS[suite] + 1):
        if broken := _how_it_breaks(try_one, seed):
            return broken, seed
    return NOTHING


def worlds_of(suite: str, seconds: float, focus: Focus | None = None) -> Callable[[int], object]:
    """What lives through the world of a seed, and raises what broke in it."""
    match suite:
        case "node" | "cluster":
            return partial(live, suite, seconds=seconds, focus=focus)
        case "sealed":
            return partial(live_sealed, seconds=seconds, focus=focus)
        case "forged entries" | "forged lists" | "forged keys":
            return partial(live_forged, suite, seconds=seconds)
        case "groups node" | "groups cluster":
            mode = suite.removeprefix("groups ")
            habits = group_town.GroupHabits(**focus.habits) if focus else None
            return lambda seed: run_groups(Plan(mode, seed, seconds=seconds, off=SAFE), habits=habits)
        case "group clients":
            return lambda seed: run(group_clients.plan_of("node", seed, seconds, off=QUIET))
        case "schedule clients":
            return lambda seed: run(schedule_clients.plan_of("node", seed, seconds, off=QUIET))
        case "schedules node" | "schedules cluster":
            mode = suite.removeprefix("schedules ")
            return lambda seed: run_schedules(Plan(mode, seed, seconds=seconds, off=SAFE))
        case "pushes node" | "pushes cluster":
            mode = suite.removeprefix("pushes ")
            return lambda seed: run_pushes(Plan(mode, seed, seconds=seconds, off=SAFE))
        case _:
            return SEEDED[suite]


def live(mode: str, seed: int, *, seconds: float, focus: Focus | None = None) -> None:
    """A day of devices whose messages are opaque to the server and to themselves."""
    if focus is None:
        run(Plan(mode, seed, seconds=seconds))
        return
    off = frozenset(FAULTS).difference(focus.faults)
    run(Plan(mode, seed, seconds=seconds, off=off), watch=partial(lead, focus=focus))


def lead(town: town.Town, _machine: object, focus: Focus) -> None:
    """Let some things happen more often than chance has drawn."""
    town.offline_ms = focus.offline_ms
    lifetime_ms = focus.lifetime_ms or town.client_limits.lifetime_ms
    town.client_limits = structs.replace(town.client_limits, lifetime_ms=lifetime_ms)
    for habit, weight in focus.habits.items():
        setattr(town.habits, habit, weight)


def live_sealed(seed: int, *, seconds: float, focus: Focus | None = None) -> None:
    """A day of sealed devices, with an honest server."""
    off = HONEST.union(FAULTS).difference(focus.faults) if focus else HONEST
    watch = partial(lead, focus=focus) if focus else None
    run(Plan("node", seed, seconds=seconds, sealed=True, off=off), watch=watch)


def live_forged(suite: str, seed: int, *, seconds: float) -> None:
    """A day of sealed devices, with a server that never fails, but lies to them about one thing.

    No device has its sessions set back: that would excuse what it cannot open.
    """
    habit, part, off = FORGED[suite]
    plan = Plan("node", seed, seconds=seconds, sealed=True, off=HONEST.union(FAULTS, off, {"set_back"}))
    run(plan, watch=partial(lead, focus=Focus({habit: part})))


def cut_power(seed: int) -> None:
    said: list[str] = []
    outcome = powercuts.run_campaign(1, seed, said.append)
    if outcome["lost"] or outcome["torn"]:
        raise powercuts.Broken(said[-1].partition("\n")[0])


def claim_keys(seed: int) -> None:
    outcome = claims.run_campaign(CLAIMS, seed, lambda _: None, watched=seed % 4 == 0)
    if broken := outcome["broken"]:
        raise claims.Broken(broken)


def use_tests(of: tuple[str, ...], _seed: int) -> None:
    assert not run_tests(of), "a test failed"


SEEDED: Mapping[str, Callable[[int], object]] = {
    "owners": owners.run, "powercuts": cut_power, "claims": claim_keys, "clocks": clocks.run, "handles": handles.run,
    "presence": presence.run, "backups": backups.run, "media": media.run, "files": files.run,
    "tests of group clients": partial(use_tests, GROUP_CLIENTS),
    "tests of schedule clients": partial(use_tests, SCHEDULE_CLIENTS), "tests of blobs": partial(use_tests, BLOBS),
    "tests of schedules": partial(use_tests, SCHEDULES),
}  # fmt: skip
"""Suites that know nothing but a seed."""


def _how_it_breaks(try_one: Callable[[int], object], seed: int) -> BaseException | None:
    try:
        with _not_for_ever():
            try_one(seed)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as broken:  # noqa: BLE001  # however it shows, it shows; a worker that dies of it hangs the pool
        return broken
    return None


def is_accident(broken: BaseException, raises: tuple[type[Exception], ...] = ()) -> bool:
    """Whether a plant only stumbled over its own feet: that proves nothing about the judges."""
    while broken.__cause__ is not None:
        broken = broken.__cause__
    if not isinstance(broken, ACCIDENTS) or isinstance(broken, raises):
        return False
    frames = traceback.extract_tb(broken.__traceback__)
    return any(frame.filename.startswith((str(PLANTS), PLANTED_IN)) for frame in frames)


class Stuck(Exception):
    """A world does not come to its end."""


@contextlib.contextmanager
def _not_for_ever() -> Generator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Stuck(f"not over after {STUCK_SECONDS} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, STUCK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run_tests(paths: tuple[str, ...]) -> bool:
    """Whether one of these tests fails."""
    there = [ROOT / path for path in paths if (ROOT / path).exists()]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        # What a planted bug teaches Hypothesis is not to be remembered.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        with contextlib.redirect_stderr(io.StringIO()):
            # What is planted has imported modules that belong to plugins of pytest, too.
            options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = pytest.main([*options, *map(str, there)], plugins=[EachOnceFirst()])
    return code != pytest.ExitCode.OK


class EachOnceFirst:
    """Every test with the first of its parameters, before any with the others: what notices a bug comes sooner."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        times: Counter[str] = Counter()
        turns: dict[str, int] = {}
        for item in items:
            name = item.nodeid.partition("[")[0]
            turns[item.nodeid] = times[name]
            times[name] += 1
        items.sort(key=lambda item: turns[item.nodeid])


# --- one bug ------------------------------------------------------------------------------------


def hunt(bug: Bug, *, with_tests: bool = False) -> Verdict:
    """Plant a bug and run the suites until one of them breaks. For a process that ends with it."""
    began = time.process_time()
    with _less_healing():
        suite, broken, seeds, anyway = "", None, 0, None
        for suite in bug.suites:
            broken, seeds, anyway = _hunt_in(suite, bug)
            if broken:
                break
        why, caught = _judge(broken, bug.raises)
        if caught and anyway:
            why, caught = f"BROKEN WITHOUT IT: {type(anyway).__name__}: {anyway}", False
    simulated = time.process_time()
    with bug.plant():
        noticed = with_tests and run_tests(bug.unit)
    spent = simulated - began, time.process_time() - simulated
    return Verdict(bug.name, noticed, bug.suites[0], suite if caught else "", seeds, why, *spent)


def _hunt_in(suite: str, bug: Bug) -> tuple[BaseException | None, int, BaseException | None]:
    """How the bug shows, in which world, and how that world breaks without it. One that computes for too long without
    it says nothing about the bug: the next ones are looked at."""
    seed = 0
    while True:
        with bug.plant():
            broken, seed = run_suite(suite, bug.seconds, bug.focus, seed)
        if broken is None:
            return *NOTHING, None
        anyway = _how_it_breaks(worlds_of(suite, bug.seconds, bug.focus), seed)
        if not isinstance(anyway, Stuck):
            return broken, seed, anyway


@contextlib.contextmanager
def _less_healing() -> Generator[None]:
    with mock.patch.object(town, "HEALING_MS", HEALING_MS), mock.patch.object(group_town, "HEALING_MS", HEALING_MS):
        yield


def _judge(broken: BaseException | None, raises: tuple[type[Exception], ...]) -> tuple[str, bool]:
    """What is to be said of how it broke, and whether the bug is caught by it."""
    if broken is None:
        return "", False
    how = f"{type(broken).__name__}: {broken}"
    return (f"STUMBLED: {how}", False) if is_accident(broken, raises) else (how, True)


def _hunt_named(name: str, with_tests: bool) -> Verdict:
    bug = next(bug for bug in BUGS if bug.name == name)
    try:
        return hunt(bug, with_tests=with_tests)
    except Uprooted as error:
        return Verdict(name, False, bug.suites[0], "", 0, f"UPROOTED: {error}", 0, 0)


# --- all of them --------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="bugs whose name contains one of these, separated by commas")
    parser.add_argument("--why", action="store_true", help="tell how each one showed")
    parser.add_argument("--tests", action="store_true", help="see whether ordinary tests notice it, too: far slower")
    parser.add_argument("--workers", type=int, default=WORKERS, help="bugs that are tried at the same time")
    asked = parser.parse_args()
    wanted: list[str] = asked.only.split(",")
    names = [bug.name for bug in BUGS if any(part in bug.name for part in wanted)]
    began = time.monotonic()
    verdicts: list[Verdict] = []
    with multiprocessing.get_context("fork").Pool(asked.workers, maxtasksperchild=1) as pool:
        for verdict in pool.imap_unordered(partial(_hunt_named, with_tests=asked.tests), names):
            verdicts.append(verdict)
            say(f"{len(verdicts):3} of {len(names)}  {line_of(verdict)}")
            if asked.why:
                say(f"           {verdict.why[:300]}")
    survivors = [verdict.name for verdict in verdicts if not verdict.suite]
    late = [verdict for verdict in verdicts if verdict.is_late]
    for verdict in late:
        say(f"LATE: {line_of(verdict)}")
    for verdict in verdicts:
        if not verdict.suite:
            say(f"SURVIVED: {verdict.name}  {verdict.why[:300]}")
    outcome = {
        "campaign": "teeth",
        "planted": len(names),
        "caught": len(names) - len(survivors),
        "survivors": survivors,
        "late": [verdict.name for verdict in late],
        "seconds": round(time.monotonic() - began, 1),
        "bugs": [{"name": v.name, "suite": v.suite, "seeds": v.seeds, "tests": v.tests} for v in verdicts],
    }
    print(json.dumps(outcome))
    return 1 if survivors else 0


def line_of(verdict: Verdict) -> str:
    caught = [f"sim {verdict.suite}, seed {verdict.seeds}"] if verdict.suite else ["NO SIMULATION"]
    spent = f"{verdict.sim_seconds:5.1f} + {verdict.test_seconds:4.1f} s"
    return f"{verdict.name:<58} {spent}  {' | '.join(['unit'] * verdict.tests + caught)}"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
