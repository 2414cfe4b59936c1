"""A campaign over worlds of one kind: seed after seed until one breaks, then one line of JSON.

Knows:   the options, how a failing seed is told, and that a long campaign must have seen everything it is meant to see.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sim.world.plan import Plan
from sim.world.world import PYTHON, Broken, World

SECONDS = {"node": 15, "cluster": 6}
"""Of simulated time: a cluster has more going on in each."""
ENOUGH = 25
"""Seeds in which everything that must happen has happened."""
MUST_HAPPEN = {
    "node": ("power cut", "power cut in recovery", "killed"),
    "cluster": ("taken over", "zombie folded", "forward repeated", "append unknown", "answer lost"),
}


class Worlds(NamedTuple):
    """One kind of worlds."""

    name: str
    """Of the module in `sim.runs`, too."""
    about: str | None
    run: Callable[[Plan], World]
    must_happen: tuple[str, ...]
    """In both modes."""


def never_happened(worlds: Worlds, mode: str, seeds: int, sometimes: Counter[str]) -> list[str]:
    """What should have happened in so many worlds, and did not."""
    return [what for what in (*MUST_HAPPEN[mode], *worlds.must_happen) if seeds >= ENOUGH and not sometimes[what]]


def run_campaign(worlds: Worlds, arguments: Sequence[str] | None = None) -> int:
    """The exit code. A failing seed prints itself, how to run it again, and the end of its story."""
    parser = argparse.ArgumentParser(description=worlds.about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=tuple(SECONDS), default="node")
    parser.add_argument("--seeds", type=int, default=25, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seconds", type=float, default=0, help="of simulated time before healing")
    options = parser.parse_args(arguments)
    seconds: float = options.seconds or SECONDS[options.mode]
    sometimes: Counter[str] = Counter()
    broken: Broken | None = None
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            sometimes += worlds.run(Plan(options.mode, seed, seconds=seconds)).sometimes
        except Broken as found:
            broken = found
            command = f"{PYTHON} -m sim.runs.{worlds.name} --mode {options.mode}"
            again = f"{command} --seed {seed} --seeds 1 --seconds {seconds}"
            print(*found.story, f"BROKEN {found}", f"again:  {again}", sep="\n", file=sys.stderr)
            break
    never = [] if broken or options.seconds else never_happened(worlds, options.mode, options.seeds, sometimes)
    return tell_outcome(worlds.name, options, broken, never, sometimes)


def tell_outcome(
    name: str, options: argparse.Namespace, broken: Broken | None, never: list[str], sometimes: Counter[str]
) -> int:
    """Print it as JSON. The exit code."""
    if never:
        print(f"never happened in this campaign: {', '.join(never)}", file=sys.stderr)
    outcome = {
        "campaign": name,
        "mode": options.mode,
        "seed": options.seed,
        "seeds": options.seeds,
        "broken": broken.promise if broken else None,
        "never": never,
        "sometimes": dict(sorted(sometimes.items())),
    }
    print(json.dumps(outcome))
    return 1 if broken or never else 0
