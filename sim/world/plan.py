"""One run of the simulated world, from a plan that can be made smaller."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from random import Random
from typing import TypeAlias

from nightmail.engine.ports import EngineError
from sim.faults.disk import Disk
from sim.faults.disk_vfs import DiskVfs
from sim.judges.story import tell_story
from sim.judges.strict import Misstep, strictly

from .cluster import Cluster, a_later_fold
from .group_sizes import a_server_with_groups
from .node import Node
from .people import Habits
from .sealed_device import a_seeded_kem
from .town import Town
from .world import PYTHON, Broken, World

Machine: TypeAlias = Node | Cluster

REPLAYS = 3
FAULTS = (
    "power", "kills", "stops", "pressure", "errors", "full", "slow", "clock", "wrong clock", "takeovers", "store",
    "log", "links", "early fold", "outages",
)  # fmt: skip
HABITS = tuple(habit.name for habit in fields(Habits))


@dataclass(frozen=True)
class Plan:
    mode: str
    seed: int
    people: int = 0
    """0: drawn from the seed."""
    seconds: float = 20
    off: frozenset[str] = field(default_factory=frozenset)
    """Habits and faults that do not occur."""
    sealed: bool = False
    """Devices seal what they send, with real keys; otherwise what they send is opaque to all but the story."""
    groups: bool = False
    """They talk in groups, too. Only sealed devices do."""
    schedules: bool = False
    """They schedule messages, too; likewise."""

    def smaller(self) -> list[Plan]:
        """Plans that might show the same failure in a shorter story, the boldest first."""
        plans: list[Plan] = [dataclasses.replace(self, seconds=self.seconds * part) for part in (0.25, 0.5, 0.8)]
        if self.people != 2:
            plans.append(dataclasses.replace(self, people=2))
        droppable = [name for name in (*FAULTS, *HABITS) if name not in self.off and name != "write"]
        plans += [dataclasses.replace(self, off=self.off | {name}) for name in droppable]
        return plans

    def command(self) -> str:
        """What lives exactly this plan through: nothing of it is left to the campaign's own defaults."""
        command = "schedule_clients" if self.schedules else "group_clients" if self.groups else "campaign"
        words = [f"{PYTHON} -m sim.runs.{command} --mode {self.mode} --seed {self.seed} --seeds 1"]
        if self.people:
            words.append(f"--people {self.people}")
        words.append(f"--seconds {self.seconds}")
        if command == "campaign":
            words.append("--sealed" if self.sealed else "--opaque")
        if self.off:
            words.append(f"--off {','.join(sorted(self.off))}")
        return " ".join(words)


def run(plan: Plan, world: World | None = None, watch: Callable[[Town, Machine], None] | None = None) -> World:
    """Live the plan through. Raises Broken (with the world's story) if a promise was not kept.

    `watch` is shown the town and its machine before anything happens.
    """
    world = world or World(plan.seed)
    people = plan.people or 2 + plan.seed % 3
    town = Town(world, plan.mode, people, plan.off, sealed=plan.sealed, groups=plan.groups, schedules=plan.schedules)
    machine: Machine | None = None
    vfs = DiskVfs(f"sim{plan.seed}", Disk(Random(0)), Random(0), default=True)
    try:
        with a_later_fold(), a_seeded_kem(), strictly(), a_server_with_groups() if plan.groups else nullcontext():
            if plan.mode == "node":
                machine = Node(world, town.limits, vfs, plan.off)
            else:
                machine = Cluster(world, town.limits, plan.off)
            town.open(machine)
            if isinstance(machine, Node):
                machine.judge_lifetimes(town.history)
            if watch:
                watch(town, machine)
            for _ in range(REPLAYS):
                world.run_until(world.now + round(plan.seconds * 1000 / REPLAYS))
                machine.check_replay()
            machine.heal()
            town.heal()
            town.settle(machine.left_over)
            town.calm(machine.left_over)
            machine.check_replay()
            machine.check_emptied(town.history.seen)
            machine.check_loss(town.history.seen)
            town.judge(machine.is_seated)
    except Broken as broken:
        _told(broken, world, town)
        raise
    except EngineError as error:
        world.tell("checker", str(error))
        raise _told(Broken("the data can be opened", str(error)), world, town) from error
    except (Misstep, AssertionError, LookupError) as mistake:
        world.tell("checker", f"{type(mistake).__name__}: {mistake}")
        rules = Broken("the fold keeps its rules", f"{type(mistake).__name__}: {mistake}")
        raise _told(rules, world, town) from mistake
    finally:
        if machine:
            machine.close()
        vfs.unregister()
    return world


def _told(broken: Broken, world: World, town: Town) -> Broken:
    broken.world, broken.story = world, tell_story(world, town.history, str(broken))
    return broken


def shrink(plan: Plan, promise: str, tries: int) -> tuple[Plan, Broken | None]:
    """The smallest plan found, within so many tries, that breaks the same promise."""
    best: Broken | None = None
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in plan.smaller():
            tries -= 1
            try:
                run(smaller)
            except Broken as broken:
                if broken.promise == promise:
                    plan, best, progress = smaller, broken, True
                    break
            if tries <= 0:
                break
    return plan, best
