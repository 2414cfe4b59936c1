"""One run of a world with groups."""

from __future__ import annotations

from random import Random

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.ports import EngineError
from sim.faults.disk import Disk
from sim.faults.disk_vfs import DiskVfs
from sim.judges.strict import Misstep, strictly

from .cluster import Cluster, a_later_fold
from .group_sizes import small_pages
from .group_town import GroupHabits, GroupTown
from .node import Node
from .plan import REPLAYS, Machine, Plan
from .poison import poisonous
from .world import Broken, World

CALM = frozenset({"clock", "wrong clock"})
"""A clock that is wrong is judged in worlds without groups: there devices know when something was sent."""


def run_groups(plan: Plan, world: World | None = None, habits: GroupHabits | None = None) -> World:
    """Live the plan through. Raises Broken if a promise about groups was not kept."""
    return live_through(plan, world or World(plan.seed), GroupTown, habits)


def live_through(plan: Plan, world: World, kind: type[GroupTown], habits: GroupHabits | None = None) -> World:
    off = plan.off | CALM
    town = kind(world, plan.people or 3 + plan.seed % 3, off, habits)
    machine: Machine | None = None
    vfs = DiskVfs(f"groups{plan.seed}", Disk(Random(0)), Random(0), default=True)
    try:
        with a_later_fold(), poisonous(NEWEST_FOLD), strictly(), small_pages():
            machine = Node(world, town.limits, vfs, off) if plan.mode == "node" else Cluster(world, town.limits, off)
            town.open(machine)
            for _ in range(REPLAYS):
                world.run_until(world.now + round(plan.seconds * 1000 / REPLAYS))
                machine.check_replay()
            machine.heal()
            town.heal()
            town.settle(machine.left_over)
            machine.check_replay()
            machine.check_emptied(town.history.seen)
            machine.check_loss(town.history.seen)
            town.judge()
    except Broken as broken:
        broken.world, broken.story = world, list(world.story)[-60:]
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
