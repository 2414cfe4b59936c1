"""Many shards, owners that come and go, and owners that do not know that they were replaced.

The real gateway and the real cluster (`engine/cluster`), over a simulated log, a simulated wide-row store and
links that lose, repeat and delay. A shard is taken over at any moment, between any two writes; the owner
before goes on for a while, folding, forwarding, saving and serving.

Here are the ports that real nodes will have between them: routing, answers, news, announced folds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, cast
from unittest import mock

from nightmail.core import send
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.core.step import FOLDS
from nightmail.engine.cluster.answer_lines import AnswerLines, node_of
from nightmail.engine.cluster.desk import ClusterDesk, DeskLimits
from nightmail.engine.cluster.links.questions import RemoteOwner, put
from nightmail.engine.cluster.ports import OwnerQuestions
from nightmail.engine.cluster.prompts import PromptLimits
from nightmail.engine.cluster.registry import ClusterRegistry
from nightmail.engine.forwarder import ForwarderLimits
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Mailboxes
from nightmail.engine.saver import SaverLimits
from nightmail.model.answers import Said
from nightmail.model.effects import Answer, Call
from nightmail.model.ids import SERVER, shard_of
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import AnyBody, FoldRaised, LimitsSet, Record, Sent, encode_record
from nightmail.model.rows import Need
from nightmail.model.words import Lane
from nightmail.outlets.push.ports import Pusher, PushResult
from nightmail.wire.items import PATH
from sim.faults.partition import Outages, Partition, PartitionFaults, SimSharedLog
from sim.faults.wide_store import Faults as StoreFaults
from sim.faults.wide_store import SimWideStore
from sim.judges.checkpoints_go_on import CheckpointsGoOn
from sim.judges.drained import left_over
from sim.judges.loss import check_loss
from sim.judges.shadow import Checkpoints, compare_with_replay
from sim.judges.strict import StrictState

from .front import Connections, Front, Limits
from .owner import WATCH_EVERY, WatchedOwner
from .registries import Registries
from .world import Broken, World

NODES = 3
TICK_MS = 25
DESK_LIMITS = DeskLimits(prompts=PromptLimits(refresh_ms=300))
SAVING_MS = 2_000
"""In good weather a checkpoint that is due stands after this, also when another owner has just taken over."""
SKEW_MS = 400
"""Clocks of nodes differ by less than what a stamp may run ahead (FoldLimits.ahead_ms)."""


class ClusterNode(NamedTuple):
    """One process, from its start to its end."""

    number: int
    """No other process ever had it."""
    front: Front
    desk: ClusterDesk
    registry: ClusterRegistry


class NodePusher:
    """The pusher of one process: what comes of a push is heard by nobody if it has ended by then."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster, self._number = cluster, number

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        cluster, number = self._cluster, self._number
        if cluster.pusher:
            cluster.pusher.push(seen, lambda result: done(result) if cluster.runs(number) else None)


class Cluster:
    """A `Backend` of several nodes with a gateway each. To owners and desks it is everything between nodes."""

    addresses = tuple(f"ws://node{node}" for node in range(NODES))

    def __init__(self, world: World, limits: Limits, off: frozenset[str]) -> None:
        self.world, self._limits, self._off = world, limits, off
        chance = world.chance
        self.later_fold = limits.version + 1
        """A version that some nodes do not know yet."""
        self.shards = chance.choice((2, 5, 16))
        self._on = True
        self._skews = [chance.randint(-SKEW_MS, SKEW_MS) for _ in range(NODES)]
        self.log_faults = PartitionFaults(world, on="log" not in off)
        self._lost = chance.choice((0.0, 0.02)) if "links" not in off else 0.0
        """How often a link between two nodes loses what it carries."""
        weather = chance.choice((StoreFaults(slow_ms=3), BAD_WEATHER)) if "store" not in off else StoreFaults()
        self.store = SimWideStore(chance, world.later, weather, resurrects=chance.random() < 0.3)
        self.store.hit = world.hit
        world.clock_slack_ms = 2 * SKEW_MS
        self.partitions = [Partition(world, self.log_faults) for _ in range(self.shards)]
        self.checkpoints = [Checkpoints(world) for _ in range(self.shards)]
        self.loop_limits = LoopLimits(
            saver=SaverLimits(
                checkpoint_rows=chance.choice((5, 5_000)),
                checkpoint_bytes=chance.choice((3_200, 10**9)),
                checkpoint_ms=chance.choice((50, 500, 3_000)),
                rows_in_memory=chance.choice((5, 50, 500_000)),
            ),
        )
        few = chance.choice((1, 3, 256))
        self.forwarder_limits = ForwarderLimits(batch=few, page=few)
        self.newest_fold = [limits.version if chance.random() < 0.5 else self.later_fold for _ in range(NODES)]
        self.newest_fold[0] = self.later_fold
        saved_ms = self.loop_limits.saver.checkpoint_ms + SAVING_MS
        saving = CheckpointsGoOn(world, self.partitions, self.store.pointer, saved_ms)
        self.outages = Outages(world, self.partitions, saving.watch if weather is not BAD_WEATHER else lambda _: None)
        self._announced = dict(enumerate(self.newest_fold))
        """Node → the newest fold that it supports, as the others know it."""
        self._folds = [1] * self.shards
        self._said: dict[int, Said] = {}
        """What owners have said, by its address: all must say the same."""
        self.registries = Registries(world, limits.gateway.silence_ms, self._lost)
        self.connections = Connections()
        self.pusher: Pusher | None = None
        self.opened_at = 0
        """Nodes come and go, one after the other: there is no moment at which all of it was started."""
        self._pressed = chance.random() < 0.5 and "pressure" not in off
        self._nodes: dict[int, ClusterNode] = {}
        self._numbers = 0
        self.zombies: list[WatchedOwner] = []
        for partition in self.partitions:
            self._set_limits(partition, limits.fold)
        self.owners: list[WatchedOwner] = []
        for shard in range(self.shards):
            self.owners.append(None)  # pyright: ignore[reportArgumentType]  # filled in the next line
            self.owners[shard] = WatchedOwner(self, shard, world.between(0, NODES - 1))
        for node in range(NODES):
            self._open(node)
        if "takeovers" not in off:
            world.later(500, self._take_over_now_and_then)
        if "outages" not in off and chance.random() < 0.5:
            self.outages.begin()
        for fault, happen in (("kills", self._kill_now_and_then), ("stops", self._stop_now_and_then)):
            if fault not in off and chance.random() < 0.5:
                world.later(1_000, happen)
        if chance.random() < 0.5:
            for node in range(NODES):
                world.later(world.between(500, 5_000), partial(self._upgrade, node))
        elif "early fold" not in off:
            world.later(world.between(1_000, 7_000), self._raise_fold_too_early)

    def clock(self, node: int) -> int:
        return self.world.now + self._skews[node]

    # --- who owns what --------------------------------------------------------------------------

    def _set_limits(self, partition: Partition, limits: FoldLimits) -> None:
        """Until they are written: a world is judged by them."""

        def written(first: int | None) -> None:
            if first is None:
                self._set_limits(partition, limits)

        first = (FoldRaised(self._limits.version), LimitsSet(limits))
        partition.append(self.clock(0), [encode_record(Record(SERVER, 0, body)) for body in first], written)

    def _take_over_now_and_then(self) -> None:
        if self._on:
            self.take_over(self.world.between(0, self.shards - 1))
            self.world.later(self.world.between(50, 2_000), self._take_over_now_and_then)

    def take_over(self, shard: int) -> None:
        """Somebody else becomes the owner. The one before may notice at once, or only in a while."""
        before = self.owners[shard]
        able = [node for node in range(NODES) if self.newest_fold[node] == self.later_fold]
        node = self.world.chance.choice(able if not before.alive else range(NODES))
        self.world.hit("taken over")
        self.world.tell(f"shard {shard}", f"goes from node {before.node} to node {node}")
        self.owners[shard] = WatchedOwner(self, shard, node)
        if taking := self._nodes.get(node):
            taking.front.waker.begin_grace(shard)
        if before.alive:
            self.zombies.append(before)
            self.world.later(self.world.between(0, 4_000), lambda: self._notice(before))
        for member in self._nodes.values():
            self.world.later(self.world.between(0, 500), partial(member.desk.owner_changed, shard))

    def _notice(self, zombie: WatchedOwner) -> None:
        zombie.end()
        if zombie in self.zombies:
            self.zombies.remove(zombie)

    def _upgrade(self, node: int) -> None:
        """A node starts again with the newer program. Once all have, the owners raise the fold by themselves."""
        if self._on and self.newest_fold[node] == self._limits.version:
            self.newest_fold[node] = self.later_fold
            self._close(node, "stops for an upgrade", "upgraded")

    def _raise_fold_too_early(self) -> None:
        """An operator's mistake: every shard goes on to the later fold, and nodes that cannot must stop."""
        if not self._on:
            return
        self.world.hit("fold raised")
        for partition in self.partitions:
            partition.append(
                self.clock(0), [encode_record(Record(SERVER, 0, FoldRaised(self.later_fold)))], lambda _: None
            )

    # --- the doors ------------------------------------------------------------------------------

    def _open(self, node: int) -> None:
        self._numbers += 1
        world, number = self.world, self._numbers
        clock, pace = partial(self.clock, node), lambda: world.now
        log = SimSharedLog(world, self.partitions, self.log_faults)
        desk = ClusterDesk(log, self, AnswerLines(number, world.chance.randbytes, pace), clock, pace, DESK_LIMITS)
        registry = self.registries.open(number)
        front = Front(
            world, f"node{node}", desk, registry, self._limits, clock, lambda do: do(), lambda: None,
            NodePusher(self, number), self.connections,
        )  # fmt: skip
        desk.attend(front.gateway)
        self._announced[node] = self.newest_fold[node]
        self._nodes[node] = member = ClusterNode(number, front, desk, registry)
        if self._pressed and self._on:
            front.press_now_and_then()
        self._tick(node, member)

    def _tick(self, node: int, member: ClusterNode) -> None:
        if self._nodes.get(node) is member:
            member.desk.tick()
            member.registry.tick()
            member.front.tick()
            self.world.later(TICK_MS, lambda: self._tick(node, member))

    def _kill_now_and_then(self) -> None:
        """A node dies: its connections are cut, and others take its shards."""
        if self._on:
            self._close(self.world.between(0, NODES - 1), "is killed", "gateway killed")
            self.world.later(self.world.between(1_000, 8_000), self._kill_now_and_then)

    def _close(self, node: int, what: str, hit: str) -> None:
        if node not in self._nodes:
            return
        self.world.hit(hit)
        self.world.tell(f"node{node}", what)
        ended = self._nodes.pop(node)
        ended.front.end(silently=lambda: self.world.maybe(0.1))
        self.registries.end(ended.number)
        if self.world.maybe(0.3):
            self._announced.pop(node, None)  # The others forget a node that is away.
        for owner in self.owners:
            if owner.node == node and owner.alive:
                self.take_over(owner.shard)
        self.world.later(self.world.between(10, 2_000), lambda: self._open(node))

    def _stop_now_and_then(self) -> None:
        """A node sends its devices to the others, then ends."""
        if not self._on:
            return
        node = self.world.between(0, NODES - 1)
        if member := self._nodes.get(node):
            member.front.gateway.stop(self.world.now)
            self._stopped(node, member)
        self.world.later(self.world.between(2_000, 8_000), self._stop_now_and_then)

    def _stopped(self, node: int, member: ClusterNode) -> None:
        if self._nodes.get(node) is not member:
            return
        if member.front.gateway.stopped:
            self._close(node, "stops", "stopped")
        else:
            self.world.later(TICK_MS, lambda: self._stopped(node, member))

    def front(self, address: str) -> Front | None:
        found = self._nodes.get(self.addresses.index(address.removesuffix(PATH)))
        return found.front if found else None

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None:
        if self._nodes:
            self.world.chance.choice(list(self._nodes.values())).front.ask(by, body, answer)

    def look(self, ask: Callable[[Mailboxes], None]) -> None:
        """A device asks one of the nodes for what waits for it, without a connection."""
        if self._nodes:
            ask(self.world.chance.choice(list(self._nodes.values())).desk)

    def read(
        self, account: int, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]
    ) -> None:
        """Ask the shard of an account or group, after healing."""
        if loop := self.owners[shard_of(account, self.shards)].loop:
            loop.read(wanted, then)

    def command(self, account: int, body: AnyBody) -> None:
        """What an operator says to the shard of an account. It may get lost."""
        partition = self.partitions[shard_of(account, self.shards)]
        partition.append(self.clock(0), [encode_record(Record(SERVER, 0, body))], lambda _: None)

    def on_wake(self, node: int, device: int) -> None:
        """An owner on this node says that something waits."""
        if member := self._nodes.get(node):
            member.front.waker.wake(device)

    def runs(self, number: int) -> bool:
        """Whether this process has not ended."""
        return any(member.number == number for member in self._nodes.values())

    def on_call(self, call: Call) -> None:
        """Somebody who calls webhooks takes its place."""

    # --- between nodes: the ports of engine/cluster -----------------------------------------------

    def owner(self, shard: int) -> OwnerQuestions | None:
        """Of the owner, or of one that was replaced and does not know."""
        zombies = [zombie for zombie in self.zombies if zombie.shard == shard and zombie.mailboxes]
        if zombies and self.world.maybe(0.3):
            self.world.hit("zombie served")
            return _over_a_link(self.world.chance.choice(zombies).mailboxes)
        return _over_a_link(self.owners[shard].mailboxes)

    def fold(self, shard: int) -> int:
        if loop := self.owners[shard].loop:
            self._folds[shard] = max(self._folds[shard], loop.state.shard.fold)
        return self._folds[shard]

    def folds(self) -> Collection[int]:
        return self._announced.values()

    def deliver(self, answers: Sequence[Answer]) -> None:
        """What one owner says, every owner says; what its link carries may be lost, or come twice."""
        for answer in answers:
            via, said = answer.via, answer.said
            if (first := self._said.setdefault(via, said)) != said:
                raise Broken("owners agree", f"one was answered {first!r}, then {said!r}")
            if self._loses("answer lost"):
                continue
            self._carry(answer)
            if self._loses("answer repeated"):
                self._carry(answer)

    def _carry(self, answer: Answer) -> None:
        members = {member.number: member for member in self._nodes.values()}
        if member := members.get(node_of(answer.via)):
            member.desk.take_answers([answer])
        else:
            self.world.hit("answer to a node that is gone")

    def _loses(self, what: str) -> bool:
        lost = self._on and self.world.maybe(self._lost)
        if lost:
            self.world.hit(what)
        return lost

    def grew(self, device: int, lane: Lane) -> None:
        for member in self._nodes.values():
            if not self._loses("news lost"):
                member.front.gateway.grew(device, lane)

    def changed(self, device: int) -> None:
        for member in self._nodes.values():
            if not self._loses("news lost"):
                member.front.gateway.changed(device)

    def dismissed(self, device: int) -> None:
        for member in self._nodes.values():
            member.front.gateway.dismissed(device)

    def low(self, device: int) -> None:
        for member in self._nodes.values():
            member.front.gateway.low(device)

    def settled(self) -> None:
        for member in list(self._nodes.values()):
            member.front.gateway.settled()

    def holds(self, device: int) -> bool:
        """Whether a device is connected, and answers."""
        return any(member.front.holds(device) for member in self._nodes.values())

    def is_seated(self, device: int) -> bool:
        """Whether a device counts as online."""
        return self.registries.is_seated(device)

    # --- the end --------------------------------------------------------------------------------

    @property
    def race_ms(self) -> int:
        return self.registries.race_ms

    def heal(self) -> None:
        self._on = False
        self.registries.heal()
        self.outages.end()
        self.log_faults.rate = 0.0
        self.store.faults = StoreFaults(slow_ms=2)
        for member in self._nodes.values():
            member.front.heal()
        for zombie in list(self.zombies):
            self._notice(zombie)

    def close(self) -> None:
        for owner in (*self.owners, *self.zombies):
            owner.end()

    def check_replay(self) -> None:
        """What an owner holds is what folding its log gives, from any older checkpoint, by any owner."""
        for owner in self.owners:
            if owner.loop and owner.loop.caught_up:
                self.world.hit("replay compared")
                live, shard = owner.loop.state, owner.shard
                compare_with_replay(
                    live, self.checkpoints[shard].some(live.offset), self.partitions[shard].batches,
                    partial(StrictState, shard, self.shards, self.later_fold, WATCH_EVERY),
                    partial(self._in_store, live),
                )  # fmt: skip
        self._count()

    def _in_store(self, live: ShardState, queue: int) -> list[tuple[int, bytes]] | None:
        """An owner that is further may have removed what `live` still has."""
        shard = live.index
        return None if self.store.pointer(shard) > live.offset else self.store.entries(shard, queue)

    def _count(self) -> None:
        for owner in self.owners:
            if owner.loop and owner.loop.state.shard.out_of_chain:
                self.world.hit("out-of-chain forward")

    def check_emptied(self, devices: Iterable[int]) -> None:
        """Nothing is promised: a write that comes late may bring back what nobody looks at any more."""

    def check_loss(self, devices: Iterable[int]) -> None:
        batches = (batch for partition in self.partitions for batch in partition.batches)
        check_loss(self.world, [owner.loop for owner in self.owners if owner.loop], devices, batches)

    def left_over(self) -> str:
        """What the first owner that holds anything still holds."""
        for owner in self.owners:
            found = left_over(owner.loop.state) if owner.loop and owner.loop.ready else "it has no owner"
            if found:
                return f"shard {owner.shard}: {found}"
        return ""


BAD_WEATHER = StoreFaults(refuses=0.02, times_out=0.03, repeats=0.03, slow_ms=8, late_ms=1_500, skew=2)


@contextmanager
def a_later_fold(fold: int = NEWEST_FOLD) -> Generator[None]:
    """A version after `fold`, which this program does not support yet, until the end of the block."""
    later = {**FOLDS.get(fold + 1, FOLDS[fold]), Sent: (send.needs_sent, step_sent_later)}
    with mock.patch.dict(FOLDS, {fold + 1: later}):
        yield


def step_sent_later(state: ShardState, by: int, via: int, sent: Sent) -> None:
    """What a later version might do: stamps that leave a little room. Owners on the old fold would differ."""
    before = state.streams[by, sent.to]
    at = before.at if before else 0
    send.step_sent(state, by, via, sent)
    stream = state.streams[by, sent.to]
    if stream is not None and stream.at != at:
        stream.at += 1


def _over_a_link(owner: OwnerQuestions | None) -> OwnerQuestions | None:
    """Asked and answered in bytes, as between two nodes."""
    if owner is None:
        return None

    def ask(name: str, arguments: bytes, on_reply: Callable[[bytes], None] | None) -> None:
        put(owner, name, arguments, on_reply or (lambda _: None))

    return cast("OwnerQuestions", RemoteOwner(ask))
