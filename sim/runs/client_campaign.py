"""A campaign over worlds of sealed devices that do one more thing than write to each other, and one verdict.

Knows:   the options, how a failing seed is told, and that a long campaign must have seen everything it is meant to see.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sim.world.plan import FAULTS, HABITS, Plan, run
from sim.world.world import Broken

from .campaign import tell_failure
from .seeded_campaign import tell_outcome

SECONDS = {"node": 20, "cluster": 8}
"""Of simulated time: a cluster has more going on in each."""
ENOUGH = 25
"""Seeds in which everything that must happen has happened."""


class PlanOf(Protocol):
    def __call__(self, mode: str, seed: int, seconds: float, people: int, off: frozenset[str]) -> Plan: ...


class ClientWorlds(NamedTuple):
    """One kind of worlds."""

    name: str
    """Of the module in `sim.runs`, too."""
    about: str | None
    plan_of: PlanOf
    must_happen: tuple[str, ...]


def never_happened(must_happen: Sequence[str], seeds: int, sometimes: Counter[str]) -> list[str]:
    """What should have happened in so many worlds, and did not."""
    return [what for what in must_happen if seeds >= ENOUGH and not sometimes[what]]


def run_client_campaign(worlds: ClientWorlds, arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=worlds.about, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        plan = worlds.plan_of(options.mode, seed, options.seconds, options.people, off)
        try:
            sometimes += run(plan).sometimes
        except Broken as found:
            broken = found
            tell_failure(plan, found, may_shrink=options.shrink)
            break
    chosen = options.off or options.people or options.seconds
    never = [] if broken or chosen else never_happened(worlds.must_happen, options.seeds, sometimes)
    return tell_outcome(worlds.name, options, broken, never, sometimes)
