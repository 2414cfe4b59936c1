"""One run of a world in which people schedule messages."""

from __future__ import annotations

from unittest import mock

from nightmail.core.retries import WEBHOOKS, RetryPolicy
from nightmail.core.schedules import settling
from sim.judges.schedule_checkers import BASE_MS

from .group_plan import live_through
from .plan import Plan
from .schedule_town import ScheduleTown
from .world import World


def run_schedules(plan: Plan, world: World | None = None) -> World:
    """Live the plan through. Raises Broken if a promise about messages for later was not kept."""
    with mock.patch.object(settling, "WEBHOOKS", RetryPolicy(WEBHOOKS.retries, base_ms=BASE_MS)):
        return live_through(plan, world or World(plan.seed), ScheduleTown)
