"""Many worlds of sealed devices that talk in groups, one verdict.

    python -m sim.runs.group_clients --mode node --seeds 100
    python -m sim.runs.group_clients --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from sim.world.group_plan import CALM
from sim.world.plan import FAULTS, HABITS, Plan, run
from sim.world.world import Broken

from .campaign import tell_failure

SECONDS = {"node": 20, "cluster": 8}
"""Of simulated time: a cluster has more going on in each."""
PEOPLE = 4
OFF = CALM | {"block"}
"""Blocks are judged in worlds of two people, and in `sim.runs.groups`."""
ENOUGH = 25
"""Seeds in which everything below must have happened."""
MUST_HAPPEN = (
    "a key behind its message", "added again", "border crossed: write to hybrid",
    "border crossed with a device away: write to hybrid", "changed in the middle of a send", "depart: done",
    "expel: done", "failed in a group: not_member", "group changed", "handed out from a group's log",
    "healed a missing key", "relisted in the middle of a send", "sealed again for other members", "started over",
    "two admins on one head",
)  # fmt: skip


def plan_of(mode: str, seed: int, seconds: float = 0, people: int = 0, off: frozenset[str] = frozenset()) -> Plan:
    return Plan(mode, seed, people or PEOPLE, seconds or SECONDS[mode], off | OFF, sealed=True, groups=True)


def never_happened(seeds: int, sometimes: Counter[str]) -> list[str]:
    """What should have happened in so many worlds, and did not."""
    return [what for what in MUST_HAPPEN if seeds >= ENOUGH and not sometimes[what]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=tuple(SECONDS), default="node")
    parser.add_argument("--seeds", type=int, default=25, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="of simulated time before healing")
    parser.add_argument(
        "--off", default="", help="habits and faults that do not occur: " + ", ".join((*FAULTS, *HABITS))
    )
    parser.add_argument("--shrink", action="store_true", help="look for a shorter story of a failure")
    options = parser.parse_args(arguments)
    named: str = options.off
    off = frozenset(name for name in named.split(",") if name)
    sometimes: Counter[str] = Counter()
    broken: Broken | None = None
    for seed in range(options.seed, options.seed + options.seeds):
        plan = plan_of(options.mode, seed, options.seconds, options.people, off)
        try:
            sometimes += run(plan).sometimes
        except Broken as found:
            broken = found
            tell_failure(plan, found, may_shrink=options.shrink)
            break
    chosen = options.off or options.people or options.seconds
    never = [] if broken or chosen else never_happened(options.seeds, sometimes)
    if never:
        print(f"never happened in this campaign: {', '.join(never)}", file=sys.stderr)
    outcome = {
        "campaign": "group_clients",
        "mode": options.mode,
        "seed": options.seed,
        "seeds": options.seeds,
        "broken": broken.promise if broken else None,
        "never": never,
        "sometimes": dict(sorted(sometimes.items())),
    }
    print(json.dumps(outcome))
    return 1 if broken or never else 0


if __name__ == "__main__":
    sys.exit(main())
