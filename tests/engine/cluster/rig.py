"""A small cluster in memory: nodes with a desk each, owners, and a shared log that answers when a test says so.

Knows:   what each node was answered, and every part of the cluster by name.
Never:   decides anything by itself: what is not held is done at once, and well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.answer_lines import AnswerLines, node_of
from nightmail.engine.cluster.desk import ClusterDesk, DeskLimits
from nightmail.engine.cluster.owner import Owner, OwnerWatcher
from nightmail.engine.cluster.ports import Follower, OwnerQuestions
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import REF_BITS, EngineError, Failed, Offered, Stored
from nightmail.engine.saver import SaverLimits
from nightmail.engine.trace import Tracer
from nightmail.model.answers import Said
from nightmail.model.effects import Answer
from nightmail.model.ids import account_of, shard_of
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, Record
from nightmail.model.words import Lane
from sim.faults.wide_store import SimWideStore
from sim.judges.strict import StrictState
from tests.engine.cluster.patient import at_once
from tests.engine.rig import BOB, PHONE, START, TABLET, a_message, a_person

SHARDS = 4
NO_CHECKPOINT = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
Done: TypeAlias = Callable[[int | None], None]
Reader: TypeAlias = tuple[int, Follower, list[int]]
"""A shard, who follows it, and how far."""


class HeldSharedLog:
    """A `SharedLog`. While it `holds`, an append waits for `succeed` or `fail`; while it `pauses`, nobody reads.

    Readers that are `sleeping` do not read either. While it `holds_ends`, what it says of its end is `on_its_way`.
    """

    def __init__(self, shards: int = SHARDS) -> None:
        self.shards, self.batch_bytes_max, self.span = shards, 1 << 30, 1
        self.batches: list[list[Stored]] = [[] for _ in range(shards)]
        self.trimmed = [0] * shards
        self.holds = self.pauses = False
        self.end_fails = self.holds_ends = False
        self.on_its_way: list[Callable[[], None]] = []
        self.held: list[tuple[int, int, Sequence[bytes], Done]] = []
        self.sleeping: Sequence[Reader] = ()
        self._readers: list[Reader] = []

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Done) -> None:
        self.held.append((shard, at, list(records), done))
        if not self.holds:
            self.succeed()

    def succeed(self) -> None:
        shard, at, records, done = self.held.pop(0)
        done(self.put(shard, at, records))

    def fail(self, *, kept: bool = False) -> None:
        """The outcome is unknown; the log has it only if it is `kept`."""
        shard, at, records, done = self.held.pop(0)
        if kept:
            self.put(shard, at, records)
        done(None)

    def put(self, shard: int, at: int, records: Sequence[bytes]) -> int:
        first = self.last(shard) + 1
        self.batches[shard].append(Stored(first, at, records))
        self.read()
        return first

    def last(self, shard: int) -> int:
        return self.batches[shard][-1].last if self.batches[shard] else 0

    def end(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        self.on_its_way.append(partial(done, Failed("no broker answers") if self.end_fails else self.last(shard)))
        if not self.holds_ends:
            self.on_its_way.pop()()

    def follow(self, shard: int, after: int, follower: Follower) -> Callable[[], None]:
        reader = shard, follower, [after]
        self._readers.append(reader)
        self.read()
        return lambda: self._readers.remove(reader) if reader in self._readers else None

    def read(self) -> None:
        """Hand out what the readers have not seen yet."""
        if self.pauses:
            return
        for reader in [reader for reader in self._readers if reader not in self.sleeping]:
            shard, follower, cursor = reader
            if cursor[0] < self.trimmed[shard]:
                self._readers.remove(reader)
                follower.trimmed_away()
                continue
            for batch in [batch for batch in self.batches[shard] if batch.last > cursor[0]]:
                cursor[0] = batch.last
                follower.take(batch)

    def readers(self, shard: int) -> list[Reader]:
        """Oldest first."""
        return [reader for reader in self._readers if reader[0] == shard]

    def trim(self, shard: int, upto: int, now: int) -> None:
        self.trimmed[shard] = max(self.trimmed[shard], upto)


class Told:
    """A `Listener` that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def grew(self, device: int, lane: Lane) -> None:
        self.told.append(("grew", device, lane))

    def changed(self, device: int) -> None:
        self.told.append(("changed", device))

    def dismissed(self, device: int) -> None:
        self.told.append(("dismissed", device))

    def low(self, device: int) -> None:
        self.told.append(("low", device))

    def settled(self) -> None:
        self.told.append(("settled",))

    def take(self) -> list[tuple[object, ...]]:
        told, self.told = self.told, []
        return told


class Notices(OwnerWatcher):
    def __init__(self) -> None:
        self.fell_behind = 0
        self.raised: list[int] = []
        self.limits: list[tuple[FoldLimits, FoldLimits]] = []
        self.stopped: list[EngineError] = []

    def on_fell_behind(self) -> None:
        self.fell_behind += 1

    def on_fold_raised(self, fold: int) -> None:
        self.raised.append(fold)

    def on_limits_set(self, before: FoldLimits, after: FoldLimits) -> None:
        self.limits.append((before, after))

    def on_stopped(self, why: EngineError) -> None:
        self.stopped.append(why)


class Node:
    """A desk with one line."""

    def __init__(self, cluster: SmallCluster, number: int, limits: DeskLimits | None) -> None:
        self.number, self.answers = number, list[tuple[int, Said]]()
        lines = AnswerLines(number, bytes, cluster.pace)
        self.desk = ClusterDesk(cluster.log, cluster, lines, cluster.clock, cluster.pace, limits)
        self.news = Told()
        self.desk.attend(self.news)
        self.line = self.desk.open_line(lambda ref, said: self.answers.append((ref, said)))
        self._ref = 0

    def say(self, by: int, *bodies: AnyBody) -> None:
        """Submit records of a device, with the next numbers of this node's line."""
        records: list[Record] = []
        for body in bodies:
            self._ref += 1
            records.append(Record(by, self.line << REF_BITS | self._ref, body))
        self.desk.submit(records)

    def offered(self, device: int = TABLET) -> list[tuple[Sequence[Offered], bool]]:
        """Ask for what waits for a device; what was answered so far can be seen in the list."""
        found: list[tuple[Sequence[Offered], bool]] = []
        self.desk.offer(device, Lane.NORMAL, 0, 10, 10**6, lambda items, more: found.append((items, more)))
        return found


class SmallCluster:
    """Everything between the nodes: `Routing`, `AnswerDelivery` and `Nodes`."""

    def __init__(self, limits: LoopLimits = NO_CHECKPOINT) -> None:
        self.now, self.limits = 0, limits
        self.log = HeldSharedLog()
        self.store = SimWideStore(Random(1), at_once)
        self.nodes: dict[int, Node] = {}
        self.owners: dict[int, Owner] = {}
        self.notices = Notices()
        self.news = Told()
        self.announced: list[int] = []
        self.delivered: list[Answer] = []
        self.known_fold = NEWEST_FOLD

    def pace(self) -> int:
        return self.now

    def clock(self) -> int:
        return START + self.now

    def node(self, number: int, limits: DeskLimits | None = None) -> Node:
        self.nodes[number] = node = Node(self, number, limits)
        return node

    def take_over(
        self, shard: int, newest_fold: int = NEWEST_FOLD, fold_limits: FoldLimits | None = None
    ) -> Owner:  # fmt: skip
        """Another owner begins. The one before is not told."""
        self.owners[shard] = owner = Owner(
            shard, self.log, partial(WideRows.open, self.store, shard), self, self.news, self,
            new_state=lambda: StrictState(shard, SHARDS, newest_fold), clock=self.clock, pace=self.pace, entropy=bytes,
            limits=self.limits, watcher=self.notices, fold_limits=fold_limits,
            new_tracer=lambda rows: Tracer(rows, lambda job: job(), lambda done: done()),
        )  # fmt: skip
        owner.tick()
        return owner

    def take_over_all(self) -> None:
        for shard in range(SHARDS):
            self.take_over(shard)

    def wait(self, ms: int = 100) -> None:
        """Let time pass for everybody."""
        self.now += ms
        for owner in self.owners.values():
            owner.tick()
        for node in self.nodes.values():
            node.desk.tick()

    # --- the ports --------------------------------------------------------------------------------

    def owner(self, shard: int) -> OwnerQuestions | None:
        owner = self.owners.get(shard)
        return owner.mailboxes if owner else None

    def fold(self, shard: int) -> int:
        return self.known_fold

    def folds(self) -> Collection[int]:
        return self.announced

    def deliver(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self.delivered.append(answer)
            if node := self.nodes.get(node_of(answer.via)):
                node.desk.take_answers([answer])


def home(account: int) -> int:
    return shard_of(account, SHARDS)


BOBS = home(BOB)
"""The shard that decides about messages to Bob."""
PHONES = home(account_of(PHONE))


def with_people(limits: LoopLimits = NO_CHECKPOINT) -> tuple[SmallCluster, Node]:
    """Alice and Bob are registered; the node they registered at has forgotten that."""
    cluster = SmallCluster(limits)
    cluster.take_over_all()
    node = cluster.node(1)
    for device, handle in ((PHONE, "alice"), (TABLET, "bob")):
        node.say(device, a_person(handle))
    cluster.wait()
    node.answers.clear()
    cluster.delivered.clear()
    cluster.news.take()
    return cluster, node


__all__ = [
    "BOBS", "NO_CHECKPOINT", "PHONES", "SHARDS", "HeldSharedLog", "Node", "SmallCluster", "Told", "a_message", "home",
    "with_people",
]  # fmt: skip
