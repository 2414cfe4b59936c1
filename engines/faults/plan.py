"""What happens to a cluster, one fault after the other, from one seed.

Knows:   the kinds of faults, how often each comes, and how long it lasts.
Never:   reads a clock or another source of randomness: the same seed gives the same plan.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random

from msgspec import Struct

OVERLAP = 0.3
"""How often a fault begins while the one before it still lasts."""


class Kind(StrEnum):
    KILL_NODE = "kill node"
    PAUSE_NODE = "pause node"
    """Longer than its session: it wakes as a zombie, while others have its shards."""
    STOP_NODE = "stop node"
    """As an upgrade does: it hands its shards over, and comes back."""
    CUT_NODES = "cut nodes"
    """Nothing passes between two nodes; both go on with clients and engines."""
    CUT_KAFKA = "cut from Kafka"
    CUT_CASSANDRA = "cut from Cassandra"
    """One node does not reach an engine, and the others do."""
    KILL_KAFKA = "kill Kafka"
    PAUSE_KAFKA = "pause Kafka"
    KILL_CASSANDRA = "kill Cassandra"
    PAUSE_CASSANDRA = "pause Cassandra"
    REFUSE_WRITES = "refuse writes"
    """Cassandra answers questions, and takes no writes."""
    TWO_NODES = "two nodes"
    """What devices send reaches two nodes at once."""
    CLOCK = "clock"
    """A node's clock is set, by up to half a minute."""


class Habit(Struct, frozen=True):
    weight: int
    shortest_s: float
    longest_s: float


HABITS = {
    Kind.KILL_NODE: Habit(4, 0.2, 6),
    Kind.PAUSE_NODE: Habit(3, 2.5, 7),
    Kind.STOP_NODE: Habit(2, 0.2, 3),
    Kind.CUT_NODES: Habit(2, 2, 12),
    Kind.CUT_KAFKA: Habit(2, 3, 11),
    Kind.CUT_CASSANDRA: Habit(2, 3, 11),
    Kind.KILL_KAFKA: Habit(1, 0.2, 3),
    Kind.PAUSE_KAFKA: Habit(1, 1, 10),
    Kind.KILL_CASSANDRA: Habit(1, 0.2, 3),
    Kind.PAUSE_CASSANDRA: Habit(1, 1, 10),
    Kind.REFUSE_WRITES: Habit(2, 3, 12),
    Kind.TWO_NODES: Habit(2, 2, 6),
    Kind.CLOCK: Habit(1, 0, 0),
}
SKEW_MS = 30_000


class Fault(Struct, frozen=True):
    kind: Kind
    node: int
    """The one it concerns, if it concerns one."""
    other: int
    """Another one, if it concerns two."""
    lasts_s: float
    skew_ms: int
    then_s: float
    """Until the next one, counted from when messages flow again; 0: the next one begins while this one lasts."""


def faults(seed: int, count: int, nodes: int) -> list[Fault]:
    chance = Random(seed)
    kinds = chance.choices(list(HABITS), [habit.weight for habit in HABITS.values()], k=count)
    found: list[Fault] = []
    for kind in kinds:
        node, other = chance.sample(range(nodes), 2)
        habit = HABITS[kind]
        found.append(
            Fault(
                kind, node, other, round(chance.uniform(habit.shortest_s, habit.longest_s), 2),
                chance.randint(-SKEW_MS, SKEW_MS),
                0 if chance.random() < OVERLAP else round(chance.uniform(0.1, 1.5), 2),
            )
        )  # fmt: skip
    return found
