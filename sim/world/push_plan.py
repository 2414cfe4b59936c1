"""One run of a world whose sleeping devices are woken."""

from __future__ import annotations

from random import Random
from unittest import mock

from msgspec.structs import replace

from nightmail.core.pushes import outcomes
from nightmail.core.retries import CALLS_OUT, RetryPolicy
from nightmail.engine.ports import EngineError
from sim.faults.disk import Disk
from sim.faults.disk_vfs import DiskVfs
from sim.judges.strict import Misstep, strictly

from .cluster import Cluster, a_later_fold
from .node import Node
from .plan import REPLAYS, Machine, Plan
from .push_life import BASE_MS, PushLife, with_wakes
from .town import Town
from .world import Broken, World

CALM = frozenset({"clock", "wrong clock", "lie", "early fold", "expiry"})
"""What only hides a push that does not come."""


def run_pushes(plan: Plan, world: World | None = None) -> World:
    """Live the plan through. Raises Broken if a promise about waking devices was not kept."""
    world = world or World(plan.seed)
    off = plan.off | CALM
    town = Town(world, plan.mode, plan.people or 2 + plan.seed % 2, off)
    town.habits.offline, town.offline_ms = world.chance.choice((3.0, 8.0)), 5_000
    gateway = replace(town.limits.gateway, hello_ms=1_500, heartbeat_ms=1_000, silence_ms=3_000)
    town.limits = town.limits._replace(fold=with_wakes(town.limits.fold), gateway=gateway)
    machine: Machine | None = None
    vfs = DiskVfs(f"pushes{plan.seed}", Disk(Random(0)), Random(0), default=True)
    policy = RetryPolicy(CALLS_OUT.retries, base_ms=BASE_MS)
    try:
        with a_later_fold(), strictly(), mock.patch.object(outcomes, "CALLS_OUT", policy):
            machine = Node(world, town.limits, vfs, off) if plan.mode == "node" else Cluster(world, town.limits, off)
            machine.pusher = life = PushLife(town, machine)
            if isinstance(machine, Cluster) and world.maybe(0.5):
                machine.registries.begin()
            town.open(machine)
            for _ in range(REPLAYS):
                world.run_until(world.now + round(plan.seconds * 1000 / REPLAYS))
                machine.check_replay()
            machine.heal()
            life.sleep()
            town.heal()
            town.settle(machine.left_over)
            machine.check_replay()
            life.judge()
            town.judge(machine.is_seated)
    except Broken as broken:
        broken.world, broken.story = world, list(world.story)[-80:]
        raise
    except EngineError as error:
        raise Broken("the data can be opened", str(error)) from error
    except (Misstep, AssertionError, LookupError) as mistake:
        raise Broken("the fold keeps its rules", f"{type(mistake).__name__}: {mistake}") from mistake
    finally:
        if machine:
            machine.close()
        vfs.unregister()
    return world
