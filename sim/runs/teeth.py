"""Plant bugs, one at a time, and see that each is caught.

    python -m sim.runs.teeth
    python -m sim.runs.teeth --only stamp,ring

Every bug runs in a process of its own: first the tests that may notice it, as a bonus, then the
simulations that must, seed by seed, until one breaks. A bug that no simulation catches fails the
command, and so does one that only trips over itself (a TypeError in what was planted). The last line
on standard output is JSON.
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
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from unittest import mock

import pytest
from msgspec import structs

from sim.planted import BUGS, Bug
from sim.planted.tools import PLANTED_IN, Focus
from sim.world import town
from sim.world.plan import FAULTS, HABITS, Plan, run

from . import claims, handles, owners, powercuts

ROOT = Path(__file__).parent.parent.parent
WORKERS = 2
HEALING_MS = 120_000
STUCK_SECONDS = 60
"""A world that computes for this long stands still: of CPU time, so that a busy machine stops no sound world."""
SEEDS = {
    "node": 60, "cluster": 300, "sealed": 150, "forged entries": 60, "forged lists": 60, "forged keys": 60,
    "owners": 2_000, "powercuts": 6_000, "claims": 30, "handles": 60,
}  # fmt: skip
"""The most that are tried."""
CLAIMS = 3_000
"""In one case."""
HONEST = frozenset(habit for habit in HABITS if habit.startswith("forge_"))
FORGED = {
    "forged entries": ("forge_entries", 0.15, ()),
    "forged lists": ("forge_lists", 0.1, ()),
    # A device that is linked with a forged key waits for its account silently: it could not show what is wrong.
    "forged keys": ("forge_keys", 0.5, ("link",)),
}
"""What the server of a suite lies about, how often, and what does not happen there. It lies about one thing, because
a refused list or key keeps a device from sending what could be forged next."""
OFFLINE_MS = 2_000
"""After this, at the latest, a device that went offline is back: days are short here, and little happens in one that
most devices miss."""
ACCIDENTS = (TypeError, AttributeError, NameError, KeyError, struct.error)
"""How a plant shows that does not fit the program any more."""
PLANTS = ROOT / "sim" / "planted"
NOTHING = None, 0


@dataclass(frozen=True)
class Verdict:
    name: str
    tests: bool
    """Whether an ordinary test noticed it."""
    suite: str
    """The simulation that caught it; empty: none did."""
    seeds: int
    why: str
    seconds: float


# --- the suites: how it broke, and after how many seeds -----------------------------------------


def run_suite(suite: str, seconds: float, focus: Focus | None = None) -> tuple[BaseException | None, int]:
    match suite:
        case "node" | "cluster":
            return _first_broken(SEEDS[suite], partial(live, suite, seconds=seconds, focus=focus))
        case "sealed":
            return _first_broken(SEEDS[suite], partial(live_sealed, seconds=seconds))
        case "forged entries" | "forged lists" | "forged keys":
            return _first_broken(SEEDS[suite], partial(live_forged, suite, seconds=seconds))
        case "claims":
            return _first_broken(SEEDS[suite], claim_keys)
        case "handles":
            return _first_broken(SEEDS[suite], handles.run)
        case "owners":
            return _first_broken(SEEDS[suite], owners.run)
        case _:
            return _first_broken(SEEDS["powercuts"], cut_power)


def live(mode: str, seed: int, *, seconds: float, focus: Focus | None = None) -> None:
    """A day of devices whose messages are opaque to the server and to themselves."""
    if focus is None:
        run(Plan(mode, seed, seconds=seconds))
        return
    off = frozenset(FAULTS).difference(focus.faults)
    watch = partial(lead, habits=focus.habits, lifetime_ms=focus.lifetime_ms)
    run(Plan(mode, seed, seconds=seconds, off=off), watch=watch)


def lead(town: town.Town, _machine: object, habits: Mapping[str, float], lifetime_ms: int = 0) -> None:
    """Let some things happen more often than chance has drawn, and let nobody miss most of the day."""
    town.offline_ms = OFFLINE_MS
    town.client_limits = structs.replace(town.client_limits, lifetime_ms=lifetime_ms or town.client_limits.lifetime_ms)
    for habit, weight in habits.items():
        setattr(town.habits, habit, weight)


def live_sealed(seed: int, *, seconds: float) -> None:
    """A day of sealed devices, with an honest server."""
    run(Plan("node", seed, seconds=seconds, sealed=True, off=HONEST))


def live_forged(suite: str, seed: int, *, seconds: float) -> None:
    """A day of sealed devices, with a server that never fails, but lies to them about one thing.

    No device has its sessions set back: that would excuse what it cannot open.
    """
    habit, part, off = FORGED[suite]
    plan = Plan("node", seed, seconds=seconds, sealed=True, off=HONEST.union(FAULTS, off, {"set_back"}))
    run(plan, watch=partial(lead, habits={habit: part}))


def cut_power(seed: int) -> None:
    said: list[str] = []
    outcome = powercuts.run_campaign(1, seed, said.append)
    if outcome["lost"] or outcome["torn"]:
        raise powercuts.Broken(said[-1].partition("\n")[0])


def claim_keys(seed: int) -> None:
    outcome = claims.run_campaign(CLAIMS, seed, lambda _: None, watched=seed % 4 == 0)
    if broken := outcome["broken"]:
        raise claims.Broken(broken)


def _first_broken(seeds: int, try_one: Callable[[int], object]) -> tuple[BaseException | None, int]:
    for seed in range(1, seeds + 1):
        try:
            with _not_for_ever():
                try_one(seed)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as broken:  # noqa: BLE001  # however it shows, it shows; a worker that dies of it hangs the pool
            return broken, seed
    return NOTHING


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
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *map(str, there)])
    return code != pytest.ExitCode.OK


# --- one bug ------------------------------------------------------------------------------------


def hunt(bug: Bug, *, with_tests: bool = True) -> Verdict:
    """Plant a bug and run the suites until one of them breaks. For a process that ends with it."""
    began = time.monotonic()
    with bug.plant(), mock.patch.object(town, "HEALING_MS", HEALING_MS):
        suite, (broken, seeds) = "", NOTHING
        for suite in bug.suites:
            broken, seeds = run_suite(suite, bug.seconds, bug.focus)
            if broken:
                break
        noticed = with_tests and run_tests(bug.unit)
    why, caught = "", False
    if broken:
        caught = not is_accident(broken, bug.raises)
        why = ("" if caught else "STUMBLED: ") + f"{type(broken).__name__}: {broken}"
    return Verdict(bug.name, noticed, suite if caught else "", seeds, why, time.monotonic() - began)


def _hunt_named(name: str, with_tests: bool) -> Verdict:
    return hunt(next(bug for bug in BUGS if bug.name == name), with_tests=with_tests)


# --- all of them --------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="bugs whose name contains one of these, separated by commas")
    parser.add_argument("--why", action="store_true", help="tell how each one showed")
    parser.add_argument("--no-tests", action="store_true", help="simulations only")
    parser.add_argument("--workers", type=int, default=WORKERS, help="bugs that are tried at the same time")
    asked = parser.parse_args()
    wanted: list[str] = asked.only.split(",")
    names = [bug.name for bug in BUGS if any(part in bug.name for part in wanted)]
    began = time.monotonic()
    verdicts: list[Verdict] = []
    with multiprocessing.get_context("fork").Pool(asked.workers, maxtasksperchild=1) as pool:
        for verdict in pool.imap_unordered(partial(_hunt_named, with_tests=not asked.no_tests), names):
            verdicts.append(verdict)
            say(f"{len(verdicts):3} of {len(names)}  {line_of(verdict)}")
            if asked.why:
                say(f"           {verdict.why[:300]}")
    survivors = [verdict.name for verdict in verdicts if not verdict.suite]
    for verdict in verdicts:
        if not verdict.suite:
            say(f"SURVIVED: {verdict.name}  {verdict.why[:300]}")
    outcome = {
        "campaign": "teeth",
        "planted": len(names),
        "caught": len(names) - len(survivors),
        "survivors": survivors,
        "seconds": round(time.monotonic() - began, 1),
        "bugs": [{"name": v.name, "suite": v.suite, "seeds": v.seeds, "tests": v.tests} for v in verdicts],
    }
    print(json.dumps(outcome))
    return 1 if survivors else 0


def line_of(verdict: Verdict) -> str:
    caught = [f"sim {verdict.suite}, seed {verdict.seeds}"] if verdict.suite else ["NO SIMULATION"]
    return f"{verdict.name:<58} {verdict.seconds:5.0f} s  {' | '.join(['unit'] * verdict.tests + caught)}"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
