"""Many worlds of sealed devices that schedule messages to each other and into groups, one verdict.

    python -m sim.runs.schedule_clients --mode node --seeds 100
    python -m sim.runs.schedule_clients --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.world.group_plan import CALM
from sim.world.plan import Plan

from .client_campaign import SECONDS, ClientWorlds, run_client_campaign

PEOPLE = 3
OFF = CALM | {"block", "lie", "guess", "forge_entries", "forge_lists", "forge_keys"}
"""Blocks, liars and a server that lies are judged in worlds without schedules."""
MUST_HAPPEN = (
    "linked by a code", "news of a schedule", "not cancelled: already_sent", "schedule cancelled",
    "schedule delivered", "schedule failed: not_member", "schedule failed: stale_devices", "schedule stale",
    "scheduled", "sealed again for later", "sealed again for later in a group", "started over", "undecryptable",
)  # fmt: skip


def plan_of(mode: str, seed: int, seconds: float = 0, people: int = 0, off: frozenset[str] = frozenset()) -> Plan:
    """Every other world has groups, too."""
    seconds = seconds or SECONDS[mode]
    return Plan(mode, seed, people or PEOPLE, seconds, off | OFF, sealed=True, groups=seed % 2 == 0, schedules=True)


WORLDS = ClientWorlds("schedule_clients", __doc__, plan_of, MUST_HAPPEN)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_client_campaign(WORLDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
