"""A simulated world that is looked at while it runs: what of it is worth showing.

Knows:   the town, its machine, and what was told of them.
Never:   changes anything: a world that is watched lives the same story as one that is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from nightmail.core.state import ShardState
from nightmail.model.ids import account_of
from nightmail.model.words import Lane
from sim.judges.history import History, Message
from sim.world.cluster import Cluster
from sim.world.owner import WatchedOwner
from sim.world.plan import Machine, Plan
from sim.world.town import Town
from sim.world.world import World

SLICE_MS = 50
"""Simulated time between two looks."""


class Watched(World):
    """A world that calls `look` after every slice of its time."""

    def __init__(self, seed: int, look: Callable[[], None]) -> None:
        super().__init__(seed)
        self._look = look

    def run_until(self, when: int) -> None:
        while True:
            super().run_until(min(when, self.now + SLICE_MS))
            self._look()
            if self.now >= when:
                return


# --- ticks ------------------------------------------------------------------------------------


class Tick(Enum):
    """What a sender sees beside a message."""

    WAITING = "waiting"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"

    @property
    def final(self) -> bool:
        return self in (Tick.READ, Tick.FAILED, Tick.WITHDRAWN)


def tick_of(history: History, message: Message) -> tuple[Tick, str]:
    """As its sending device knows it, and for a failure why.

    Delivered and read when the recipient's first device is; failed only if none of them got it.
    """
    match message.fate:
        case "waiting":
            return Tick.WAITING, ""
        case "voided":
            return Tick.WITHDRAWN, ""
        case "sent":
            pass
        case fate:
            return Tick.FAILED, fate
    seen = history.of(message.by)
    key = (message.by, message.to, message.lane, message.n)
    if any(account_of(device) == message.to for device in seen.read_at.get(key, ())):
        return Tick.READ, ""
    if any(account_of(device) == message.to for device in seen.delivered_at.get(key, ())):
        return Tick.DELIVERED, ""
    failed = seen.failed_at.get(key, {})
    addressed = message.envelopes[message.version]
    if addressed and addressed <= failed.keys():
        return Tick.FAILED, failed[min(addressed)].name.lower().replace("_", " ")
    return Tick.SENT, ""


class Ticks:
    """Every message's tick, and a handful of messages to follow from the first tick to the last."""

    FOLLOWED = 12
    STAYS_MS = 2_500
    """How long a message is shown after its last tick, and longer than that only if nothing newer came."""
    OLD_MS = 15_000

    def __init__(self, history: History) -> None:
        self._history = history
        self._open: dict[str, Message] = {}
        self._known = 0
        self._closed: Counter[Tick] = Counter()
        self.counts: Counter[Tick] = Counter()
        self.followed: list[tuple[Message, Tick, str]] = []
        self._since: dict[str, tuple[Tick, int]] = {}
        """Message → its tick and since when; for those that are followed."""

    def look(self, now: int) -> None:
        new = [message for message in islice(self._history.messages.values(), self._known, None) if message.of is None]
        self._known = len(self._history.messages)
        self._open.update((message.id, message) for message in new)
        still: Counter[Tick] = Counter()
        for message in list(self._open.values()):
            tick, _ = tick_of(self._history, message)
            if tick.final:
                self._closed[tick] += 1
                del self._open[message.id]
            else:
                still[tick] += 1
        self.counts = self._closed + still
        self._follow(now, new)

    def _follow(self, now: int, new: list[Message]) -> None:
        kept: list[tuple[Message, Tick, str]] = []
        for message, _, _ in self.followed:
            tick, why = tick_of(self._history, message)
            if self._since[message.id][0] is not tick:
                self._since[message.id] = (tick, now)
            age = now - self._since[message.id][1]
            if new and age > (self.STAYS_MS if tick.final else self.OLD_MS):
                del self._since[message.id]
            else:
                kept.append((message, tick, why))
        free = self.FOLLOWED - len(kept)
        for message in new[-free:] if free else ():
            tick, why = tick_of(self._history, message)
            self._since[message.id] = (tick, now)
            kept.append((message, tick, why))
        self.followed = kept


# --- machines ---------------------------------------------------------------------------------


@dataclass
class Place:
    """Where mailboxes live: the node, or one shard of the cluster."""

    name: str
    state: str
    """up, recovering or down."""
    where: str
    pointer: int | None = None
    log_end: int | None = None
    unsaved: int | None = None
    """Changed rows that the next checkpoint will save."""


@dataclass
class Queues:
    """What the server holds for one device."""

    normal: int = 0
    high: int = 0
    receipts: int = 0


def places(machine: Machine) -> list[Place]:
    if isinstance(machine, Cluster):
        return [_shard(machine, owner) for owner in machine.owners]
    loop, marks = machine.loop, machine.marks
    where = {"log-": "disk full for the log", "rows.": "disk full for the rows"}.get(machine.faults.full, "")
    if loop is None or marks is None:
        return [Place("node", "down", where)]
    return [Place("node", "up" if loop.ready else "recovering", where, *marks, loop.state.count_changed())]


def _shard(cluster: Cluster, owner: WatchedOwner) -> Place:
    zombies = sum(zombie.shard == owner.shard for zombie in cluster.zombies)
    where = f"node {owner.node}" + (f", {zombies} zombie{'s' * (zombies > 1)}" if zombies else "")
    end = cluster.partitions[owner.shard].last
    if not owner.alive:
        return Place(f"shard {owner.shard}", "down", where, None, end)
    if owner.loop is None or owner.rows is None:
        return Place(f"shard {owner.shard}", "recovering", where, None, end)
    state = "up" if owner.loop.ready else "recovering"
    return Place(f"shard {owner.shard}", state, where, owner.rows.pointer, end, owner.loop.state.count_changed())


def queues(machine: Machine) -> Iterator[tuple[int, Queues]]:
    """Of every device whose rows are in memory."""
    for state in _states(machine):
        # Only by items(): asking for one row would count as a step of the record that is being folded.
        receipts = dict(state.receipts.items())
        for device, mailbox in state.mailboxes.items():
            if mailbox:
                waiting = receipts.get(device)
                yield (
                    device,
                    Queues(
                        mailbox.lanes[Lane.NORMAL].waiting,
                        mailbox.lanes[Lane.HIGH].waiting,
                        len(waiting.items) if waiting else 0,
                    ),
                )


def _states(machine: Machine) -> list[ShardState]:
    loops = [owner.loop for owner in machine.owners] if isinstance(machine, Cluster) else [machine.loop]
    return [loop.state for loop in loops if loop]


# --- a day ------------------------------------------------------------------------------------


class Scene:
    """One day of one world, as far as it has come."""

    def __init__(self, day: int, plan: Plan, look: Callable[[Scene], None]) -> None:
        self.day, self.plan = day, plan
        self.world = Watched(plan.seed, lambda: look(self))
        self.town: Town
        self.machine: Machine
        self.ticks: Ticks
        self.queues: dict[int, Queues] = {}
        """Device → what was last known to wait for it: rows that nobody uses leave memory."""
        self.judged = False

    def open(self, town: Town, machine: Machine) -> None:
        self.town, self.machine, self.ticks = town, machine, Ticks(town.history)

    def refresh(self) -> None:
        self.ticks.look(self.world.now)
        self.queues.update(queues(self.machine))

    @property
    def sent(self) -> int:
        """Messages that the server took, re-seals included: what is judged."""
        return sum(message.fate == "sent" for message in self.town.history.messages.values())

    @property
    def power_cuts(self) -> int:
        return sum(times for what, times in self.world.sometimes.items() if what.startswith("power cut"))
