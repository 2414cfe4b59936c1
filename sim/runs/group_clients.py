"""Many worlds of sealed devices that talk in groups, one verdict.

    python -m sim.runs.group_clients --mode node --seeds 100
    python -m sim.runs.group_clients --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.world.group_plan import CALM
from sim.world.plan import Plan

from .client_campaign import SECONDS, ClientWorlds, run_client_campaign

PEOPLE = 4
OFF = CALM | {"block"}
"""Blocks are judged in worlds of two people, and in `sim.runs.groups`."""
MUST_HAPPEN = (
    "a key behind its message", "added again", "border crossed: write to hybrid",
    "border crossed with a device away: write to hybrid", "changed in the middle of a send", "depart: done",
    "expel: done", "failed in a group: not_member", "group changed", "handed out from a group's log",
    "healed a missing key", "relisted in the middle of a send", "sealed again for other members", "started over",
    "two admins on one head",
)  # fmt: skip


def plan_of(mode: str, seed: int, seconds: float = 0, people: int = 0, off: frozenset[str] = frozenset()) -> Plan:
    return Plan(mode, seed, people or PEOPLE, seconds or SECONDS[mode], off | OFF, sealed=True, groups=True)


WORLDS = ClientWorlds("group_clients", __doc__, plan_of, MUST_HAPPEN)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_client_campaign(WORLDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
