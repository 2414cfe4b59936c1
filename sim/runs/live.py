"""The simulated world at work, live in the terminal.

    python -m sim.runs.live                                      days of one node and of a cluster, in turn
    python -m sim.runs.live --mode cluster --seed 7 --speed 2    one kind of day, slower
    python -m sim.runs.live --svg docs/live.svg --seconds 9      days that are judged, then a picture of one moment

Each day the people write, the machines fail, everything heals, and the checkers judge. Where
standard output is no terminal, one short day is told in plain lines.
"""

from __future__ import annotations

import argparse
import io
import re
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Protocol

from rich.console import Console
from rich.constrain import Constrain
from rich.live import Live

from sim.world.plan import Plan, run
from sim.world.world import Broken

from .campaign import tell_failure
from .scene import Scene
from .view import Score, clock, draw, fault_line

FIRST_SEED = 2
"""Begins with a day of many messages and several power cuts."""
SPEED = 5.0
FRAMES_PER_S = 10
HEALING_SPEED = 4
"""How much faster time goes while healing."""
ROOM_FOR_CTRL_C = 3
"""Columns left free: the terminal writes ^C behind a frame, and one line more would not be wiped."""
PICTURE = (110, 30)
PICTURE_DAYS = 9
"""So many days does a picture take: all are judged but the one that it shows."""
KINDS = {"node": "one node", "cluster": "a cluster"}

HELLO = """\
Nightmail's real heart in a simulated world: people write, disks and nodes fail, checkers judge.
Next: make test (all tests), make sim (hundreds of such worlds, without pictures).
"""


class Stopped(Exception):
    """Somebody has seen enough."""


class Show(Protocol):
    """Where a day is shown: a terminal, a pipe, a picture."""

    def look(self, scene: Scene) -> None: ...

    def say(self, line: str) -> None: ...


class Interrupt:
    """Ctrl-C ends the show at the next look, so that it never strikes inside of SQLite; a second one strikes."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGINT, self._on_signal)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        if self.asked:
            raise Stopped


# --- three ways to look -----------------------------------------------------------------------


class Screen:
    """Keeps simulated time at the wanted speed, and draws a few frames per second."""

    def __init__(self, live: Live, speed: float, score: Score, interrupt: Interrupt) -> None:
        self._live, self._speed, self._score, self._interrupt = live, speed, score, interrupt
        self._base = (0.0, 0)
        self._pace = 0.0
        self._drawn = 0.0

    def look(self, scene: Scene) -> None:
        self._interrupt.check()
        now = time.monotonic()
        if now - self._drawn > 1 / FRAMES_PER_S:
            self._drawn = now
            scene.refresh()
            width, height = self._live.console.size
            width -= ROOM_FOR_CTRL_C
            frame = draw(scene, self._score, self._speed, width, height - 2)  # What is said stays above it.
            self._live.update(Constrain(frame, width), refresh=True)
        self._keep_pace(scene.world.now, self._speed * (HEALING_SPEED if scene.town.healing else 1))

    def _keep_pace(self, simulated_ms: int, pace: float) -> None:
        real, simulated = self._base
        due = real + (simulated_ms - simulated) / 1000 / pace
        now = time.monotonic()
        if pace != self._pace or not now - 0.5 < due < now + 60:  # Another pace, another day, or too slow to follow.
            self._base = (now, simulated_ms)
            self._pace = pace
        while now < due <= now + 60:
            self._interrupt.check()
            time.sleep(min(due - now, 0.1))
            now = time.monotonic()

    def say(self, line: str) -> None:
        self._live.console.print(line, highlight=False)


class Lines:
    """Plain text: each fault, and every few seconds how far things are. As fast as it goes."""

    EVERY_MS = 2_000

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._day = self._seen_ms = 0

    def look(self, scene: Scene) -> None:
        self._interrupt.check()
        now, before = scene.world.elapsed_ms, self._seen_ms if scene.day == self._day else -1
        self._day, self._seen_ms = scene.day, now
        for fault in scene.world.faults:
            if fault.at_ms > before:
                self.say(f"{clock(fault.at_ms)}    {fault_line(scene, fault)}")
        if now // self.EVERY_MS > before // self.EVERY_MS:
            scene.refresh()
            waiting = sum(held.normal + held.high for held in scene.queues.values())
            self.say(f"{clock(now)}  {scene.sent:,} sent, {waiting:,} waiting in mailboxes")

    def say(self, line: str) -> None:
        print(line, flush=True)


class Picture:
    """One frame, at the end of a bad day. The days before it are lived through and judged."""

    def __init__(self, path: Path, score: Score, day: int) -> None:
        self._path, self._score, self._day = path, score, day

    def look(self, scene: Scene) -> None:
        if scene.day < self._day or scene.world.elapsed_ms < scene.plan.seconds * 1000:
            return
        scene.refresh()
        width, height = PICTURE
        console = Console(record=True, width=width, height=height, file=io.StringIO(), color_system="truecolor")
        console.print(draw(scene, self._score, 0, width, height))
        # Without the typefaces that it would fetch: a picture must not depend on somebody else's server.
        self._path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="make live"), flags=re.S))
        raise Stopped

    def say(self, line: str) -> None:
        print(line)


# --- days -------------------------------------------------------------------------------------


def show_days(plans: Iterable[Plan], show: Show, score: Score) -> tuple[Plan, Broken] | None:
    """Live each plan through and say how it went, until one breaks a promise or somebody has seen enough."""
    for day, plan in enumerate(plans, 1):
        name = f"day {day} ({KINDS[plan.mode]}, seed {plan.seed})"
        scene = Scene(day, plan, show.look)
        try:
            run(plan, scene.world, scene.open)
        except Stopped:
            show.say(f"{name}: not judged, {scene.sent:,} messages sent so far")
            return None
        except Broken as broken:
            score.broken = broken.promise
            return plan, broken
        score.add(scene)
        show.say(
            f"{name}: everything that was sent was shown exactly once, in order, or its sender knows why: "
            f"{scene.sent:,} messages"
        )
    return None


def plans_of(mode: str, seed: int, seconds: float, days: int) -> Iterable[Plan]:
    """Days of one mode, or of each in turn; 0 days: endlessly."""
    modes = (mode,) if mode else tuple(KINDS)
    for day in range(days) if days else count():
        yield Plan(modes[day % len(modes)], seed + day, seconds=seconds)


def summary(score: Score) -> str:
    return (
        f"{score.judged}, {score.events:,} events, {score.power_cuts} power "
        f"cuts, {score.takeovers} takeovers, {score.replays} replays compared: "
        f"lost {score.lost}, doubled {score.doubled}" + (f", BROKEN: {score.broken}" if score.broken else "")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=tuple(KINDS), default="", help="default: a day of each, in turn")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first day; each day takes the next")
    parser.add_argument("--speed", type=float, default=SPEED, help="simulated seconds per second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0, help="simulated length of a day, before healing")
    parser.add_argument("--days", type=int, default=0, help="default: until Ctrl-C")
    parser.add_argument("--svg", type=Path, help="draw the end of the last day into this file, and nothing else")
    asked = parser.parse_args(arguments)
    if asked.speed <= 0:
        parser.error("--speed must be above 0")

    score, interrupt, console = Score(), Interrupt(), Console()
    plain = asked.svg or not console.is_terminal
    days = asked.days or (PICTURE_DAYS if asked.svg else 1 if plain else 0)
    plans = plans_of(asked.mode, asked.seed, asked.seconds or (10 if plain else 60), days)
    if asked.svg:
        return 1 if show_days(plans, Picture(asked.svg, score, days), score) else 0
    with interrupt:
        print(HELLO, flush=True)
        if plain:
            broken = show_days(plans, Lines(interrupt), score)
        else:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                broken = show_days(plans, Screen(live, asked.speed, score, interrupt), score)
        print(summary(score))
        if broken:
            tell_failure(*broken, may_shrink=False)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
