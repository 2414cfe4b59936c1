"""Many shards, owners that come and go, and owners that do not know that they are gone.

The real gateway, loop, fold, forwarder and wide-row code, over a simulated log and a simulated wide-row
store. A shard is taken over at any moment, between any two writes; whoever had it goes on for a
while, folding, forwarding, saving and serving.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial

from nightmail.core import send
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.core.step import FOLDS
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.desk import LoopDesk
from nightmail.engine.forwarder import Forwarder, ForwarderLimits
from nightmail.engine.loop import Loop, LoopLimits, Watcher
from nightmail.engine.memory import MemoryRegistry
from nightmail.engine.ports import Checkpoint, Failed, TooNew, TrimmedAway
from nightmail.engine.saver import SaverLimits
from nightmail.model.answers import Said
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, FoldRaised, LimitsSet, Record, Sent, encode_record
from nightmail.model.words import Lane
from nightmail.wire.items import PATH
from sim.faults.counted_rows import CountedRows
from sim.faults.partition import Outages, OwnersLog, Partition, PartitionFaults
from sim.faults.wide_store import Faults as StoreFaults
from sim.faults.wide_store import SimWideStore
from sim.judges.checkpoints_go_on import CheckpointsGoOn
from sim.judges.drained import left_over
from sim.judges.shadow import Checkpoints, ShadowRows, compare_with_replay
from sim.judges.strict import StrictState

from .desk import ClusterDesk, Lines
from .front import Front, Limits
from .world import World

NODES = 3
WATCH_EVERY = 8
TICK_MS = 25
LOOK_AGAIN_TICKS = 12
SAVING_MS = 2_000
"""In good weather a checkpoint that is due stands after this, whoever has just taken over."""
SKEW_MS = 400
"""Clocks of nodes differ by less than what a stamp may run ahead (FoldLimits.ahead_ms)."""


class Owner(Watcher):
    """One shard on one node, from its takeover to its end."""

    def __init__(self, cluster: Cluster, shard: int, node: int) -> None:
        self.cluster, self.shard, self.node = cluster, shard, node
        self.world = cluster.world
        self.alive = True
        self.log = OwnersLog(cluster.partitions[shard])
        self.loop: Loop | None = None
        self.rows: WideRows | None = None
        self.desk: LoopDesk | None = None
        self._pace_ms = self.world.chance.choice((5, 25))
        self._open()

    @property
    def is_zombie(self) -> bool:
        return self.cluster.owners[self.shard] is not self

    def head(self, device: int, lane: Lane) -> int:
        """The newest number of a queue, as far as is known here."""
        mailbox = self.loop.state.mailboxes.rows.get(device) if self.loop else None
        return mailbox.lanes[lane].head if mailbox else 0

    def _open(self) -> None:
        def opened(rows: WideRows | Failed) -> None:
            if not self.alive:
                return
            if isinstance(rows, Failed):
                self.world.later(50, self._open)
                return
            cluster, self.rows = self.cluster, rows
            counted = ShadowRows(CountedRows(rows, self.world), cluster.checkpoints[self.shard])
            fold, desk = cluster.newest_fold[self.node], LoopDesk(self.world.chance.randbytes, lambda: self.world.now)
            self.loop = Loop(
                self.log, counted, lambda: cluster.clock(self.node), self._on_effects,
                new_state=lambda: StrictState(self.shard, cluster.shards, fold, WATCH_EVERY),
                forwarder=Forwarder(self.shard, self._forward, counted, cluster.forwarder_limits),
                pace=lambda: self.world.now, limits=cluster.loop_limits, watcher=self,
            )  # fmt: skip
            desk.attend(self.loop, cluster)
            self.desk = desk
            # Whoever asked may still be waiting, at another node: answer again.
            self.loop.recover(announce_after=0)
            self._run()

        WideRows.open(self.cluster.store, self.shard, opened)

    def _run(self) -> None:
        loop = self.loop
        if not self.alive or loop is None:
            return
        loop.tick()
        if self.desk:
            self.desk.tick()
        if loop.ready:
            self._follow(loop)
        if loop.stopped:
            assert isinstance(loop.stopped, TooNew), loop.stopped
            self.world.hit("old fold stopped")
            self.end()
            if not self.is_zombie:
                self.cluster.take_over(self.shard)
            return
        self.world.later(self.world.between(1, self._pace_ms), self._run)

    def _follow(self, loop: Loop) -> None:
        """Feed what the log has behind what was fed before; sometimes not all of it at once."""
        try:
            for batch in self.cluster.partitions[self.shard].after(loop.next_offset - 1):
                if self.is_zombie:
                    self.world.hit("zombie folded")
                loop.feed(batch)
                if self.world.maybe(0.2):
                    return
        except TrimmedAway:
            self.world.hit("fell behind the log")
            loop.fell_behind()

    def end(self) -> None:
        self.alive = False
        self.log.close()

    def _forward(self, shard: int, records: Sequence[bytes], done: Callable[[bool], None]) -> None:
        if self.is_zombie:
            self.world.hit("zombie forwarded")

        def appended(first: int | None) -> None:
            if self.alive:
                done(first is not None)

        self.cluster.partitions[shard].append(self.cluster.clock(self.node), records, appended)

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        if not self.alive or self.desk is None:
            return
        news: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Answer):
                self.cluster.lines.answer(effect.via, effect.said)
            else:
                news.append(effect)
        self.desk.on_effects(news)

    def on_poison(self, offset: int, error: Exception) -> None:
        raise error

    def on_saved(self, checkpoint: Checkpoint) -> None:
        if self.is_zombie:
            self.world.hit("zombie saved")
        if any(self.cluster.partitions[shard].is_down for shard, _, _ in checkpoint.forwards):
            self.world.hit("checkpoint saved forwards to a log that is down")


class Cluster:
    """A `Backend` of several nodes with a gateway each. What owners have to tell, every gateway hears."""

    addresses = tuple(f"ws://node{node}" for node in range(NODES))

    def __init__(self, world: World, limits: Limits, off: frozenset[str]) -> None:
        self.world, self._limits, self._off = world, limits, off
        chance = world.chance
        self.shards = chance.choice((2, 5, 16))
        self._on = True
        self._skews = [chance.randint(-SKEW_MS, SKEW_MS) for _ in range(NODES)]
        self._log_faults = PartitionFaults(world, on="log" not in off)
        weather = chance.choice((StoreFaults(slow_ms=3), BAD_WEATHER)) if "store" not in off else StoreFaults()
        self.store = SimWideStore(chance, world.later, weather, resurrects=chance.random() < 0.3)
        self.store.hit = world.hit
        world.clock_slack_ms = 2 * SKEW_MS
        self.partitions = [Partition(world, self._log_faults) for _ in range(self.shards)]
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
        self.newest_fold = [NEWEST_FOLD if chance.random() < 0.5 else NEWEST_FOLD + 1 for _ in range(NODES)]
        self.newest_fold[0] = NEWEST_FOLD + 1
        saved_ms = self.loop_limits.saver.checkpoint_ms + SAVING_MS
        saving = CheckpointsGoOn(world, self.partitions, self.store.pointer, saved_ms)
        self.outages = Outages(world, self.partitions, saving.watch if weather is not BAD_WEATHER else lambda _: None)
        self.lines = Lines()
        self._registry = MemoryRegistry(limits.gateway.silence_ms)
        self._pressed = chance.random() < 0.5 and "pressure" not in off
        self._fronts: dict[int, tuple[Front, ClusterDesk]] = {}
        self.zombies: list[Owner] = []
        for partition in self.partitions:
            self._set_limits(partition, limits.fold)
        self.owners: list[Owner] = []
        for shard in range(self.shards):
            self.owners.append(None)  # pyright: ignore[reportArgumentType]  # filled in the next line
            self.owners[shard] = Owner(self, shard, world.between(0, NODES - 1))
        for node in range(NODES):
            self._open(node)
        if "takeovers" not in off:
            world.later(500, self._take_over_now_and_then)
        if "outages" not in off and chance.random() < 0.5:
            self.outages.begin()
        for fault, happen in (("kills", self._kill_now_and_then), ("stops", self._stop_now_and_then)):
            if fault not in off and chance.random() < 0.5:
                world.later(1_000, happen)
        world.later(world.between(2_000, 15_000), self._raise_fold)

    def clock(self, node: int) -> int:
        return self.world.now + self._skews[node]

    # --- who owns what --------------------------------------------------------------------------

    def _set_limits(self, partition: Partition, limits: FoldLimits) -> None:
        """Until they are written: a world is judged by them."""

        def written(first: int | None) -> None:
            if first is None:
                self._set_limits(partition, limits)

        first = (FoldRaised(NEWEST_FOLD), LimitsSet(limits))
        partition.append(self.clock(0), [encode_record(Record(SERVER, 0, body)) for body in first], written)

    def _take_over_now_and_then(self) -> None:
        if self._on:
            self.take_over(self.world.between(0, self.shards - 1))
            self.world.later(self.world.between(50, 2_000), self._take_over_now_and_then)

    def take_over(self, shard: int) -> None:
        """Somebody else becomes the owner. The one before may notice at once, or only in a while."""
        before = self.owners[shard]
        able = [node for node in range(NODES) if self.newest_fold[node] == NEWEST_FOLD + 1]
        node = self.world.chance.choice(able if not before.alive else range(NODES))
        self.world.hit("taken over")
        self.world.tell(f"shard {shard}", f"goes from node {before.node} to node {node}")
        self.owners[shard] = Owner(self, shard, node)
        if before.alive:
            self.zombies.append(before)
            self.world.later(self.world.between(0, 4_000), lambda: self._notice(before))

    def _notice(self, zombie: Owner) -> None:
        zombie.end()
        if zombie in self.zombies:
            self.zombies.remove(zombie)

    def _raise_fold(self) -> None:
        """From here on every shard folds as the later version says; nodes that cannot must stop."""
        if not self._on:
            return
        self.world.hit("fold raised")
        for partition in self.partitions:
            partition.append(
                self.clock(0), [encode_record(Record(SERVER, 0, FoldRaised(NEWEST_FOLD + 1)))], lambda _: None
            )

    # --- the doors ------------------------------------------------------------------------------

    def _open(self, node: int) -> None:
        desk = ClusterDesk(self, node)
        front = Front(
            self.world, f"node{node}", desk, self._registry, self._limits, lambda: self.clock(node),
            lambda do: do(), lambda: None,
        )  # fmt: skip
        self._fronts[node] = front, desk
        if self._pressed and self._on:
            front.press_now_and_then()
        self._tick(node, front, desk)

    def _tick(self, node: int, front: Front, desk: ClusterDesk, count: int = 0) -> None:
        if self._fronts.get(node) != (front, desk):
            return
        desk.tick()
        front.tick()
        if count % LOOK_AGAIN_TICKS == 0:
            # An owner that is replaced may take its news with it: ask again.
            for device in sorted(desk.devices):
                self._tell(front, device)
            front.gateway.settled()
        self.world.later(TICK_MS, lambda: self._tick(node, front, desk, count + 1))

    def _tell(self, front: Front, device: int) -> None:
        for lane in Lane:
            front.gateway.grew(device, lane)
        front.gateway.changed(device)

    def _kill_now_and_then(self) -> None:
        """A node dies: its connections are cut, and others take its shards."""
        if self._on:
            self._close(self.world.between(0, NODES - 1), "is killed", "gateway killed")
            self.world.later(self.world.between(1_000, 8_000), self._kill_now_and_then)

    def _close(self, node: int, what: str, hit: str) -> None:
        if node not in self._fronts:
            return
        self.world.hit(hit)
        self.world.tell(f"node{node}", what)
        front, _ = self._fronts.pop(node)
        front.end(silently=lambda: self.world.maybe(0.1))
        for owner in self.owners:
            if owner.node == node and owner.alive:
                self.take_over(owner.shard)
        self.world.later(self.world.between(10, 2_000), lambda: self._open(node))

    def _stop_now_and_then(self) -> None:
        """An upgrade: a node sends its devices to the others, then ends."""
        if not self._on:
            return
        node = self.world.between(0, NODES - 1)
        if node in self._fronts:
            front, _ = self._fronts[node]
            front.gateway.stop(self.world.now)
            self._stopped(node, front)
        self.world.later(self.world.between(2_000, 8_000), self._stop_now_and_then)

    def _stopped(self, node: int, front: Front) -> None:
        if node not in self._fronts or self._fronts[node][0] is not front:
            return
        if front.gateway.stopped:
            self._close(node, "stops", "stopped")
        else:
            self.world.later(TICK_MS, lambda: self._stopped(node, front))

    def front(self, address: str) -> Front | None:
        found = self._fronts.get(self.addresses.index(address.removesuffix(PATH)))
        return found[0] if found else None

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None:
        if self._fronts:
            front, _ = self.world.chance.choice(list(self._fronts.values()))
            front.ask(by, body, answer)

    def whoever_serves(self, shard: int) -> Owner:
        """The owner, or one that was replaced and does not know."""
        owner = self.owners[shard]
        zombies = [zombie for zombie in self.zombies if zombie.shard == shard and zombie.desk]
        if zombies and self.world.maybe(0.3):
            self.world.hit("zombie served")
            owner = self.world.chance.choice(zombies)
        return owner

    # --- what owners have to tell -----------------------------------------------------------------

    def grew(self, device: int, lane: Lane) -> None:
        for front, _ in self._fronts.values():
            front.gateway.grew(device, lane)

    def changed(self, device: int) -> None:
        for front, _ in self._fronts.values():
            front.gateway.changed(device)

    def dismissed(self, device: int) -> None:
        for front, _ in self._fronts.values():
            front.gateway.dismissed(device)

    def low(self, device: int) -> None:
        for front, _ in self._fronts.values():
            front.gateway.low(device)

    def settled(self) -> None:
        for front, _ in list(self._fronts.values()):
            front.gateway.settled()

    def is_seated(self, device: int) -> bool:
        """Whether a device counts as online."""
        return self._registry.find(device, self.world.now) is not None

    # --- the end --------------------------------------------------------------------------------

    def heal(self) -> None:
        self._on = False
        self.outages.end()
        self._log_faults.rate = 0.0
        self.store.faults = StoreFaults(slow_ms=2)
        for front, _ in self._fronts.values():
            front.heal()
        for zombie in list(self.zombies):
            self._notice(zombie)

    def close(self) -> None:
        for owner in (*self.owners, *self.zombies):
            owner.end()

    def check_replay(self) -> None:
        """What an owner holds is what folding its log gives, from any older checkpoint, by whomever."""
        for owner in self.owners:
            if owner.loop and owner.loop.caught_up:
                self.world.hit("replay compared")
                live, shard = owner.loop.state, owner.shard
                compare_with_replay(
                    live, self.checkpoints[shard].some(live.offset), self.partitions[shard].batches,
                    partial(StrictState, shard, self.shards, NEWEST_FOLD + 1, WATCH_EVERY),
                    partial(self._in_store, live),
                )  # fmt: skip
        self._count()

    def _in_store(self, live: ShardState, queue: int) -> list[tuple[int, bytes]] | None:
        """Whoever is further may have removed what `live` still has."""
        shard = live.index
        return None if self.store.pointer(shard) > live.offset else self.store.entries(shard, queue)

    def _count(self) -> None:
        for owner in self.owners:
            if owner.loop and owner.loop.state.shard.out_of_chain:
                self.world.hit("out-of-chain forward")

    def check_emptied(self, devices: Iterable[int]) -> None:
        """Nothing is promised: a write that comes late may bring back what nobody looks at any more."""

    def left_over(self) -> str:
        """What the first owner that holds anything still holds."""
        for owner in self.owners:
            found = left_over(owner.loop.state) if owner.loop and owner.loop.ready else "it has no owner"
            if found:
                return f"shard {owner.shard}: {found}"
        return ""


BAD_WEATHER = StoreFaults(refuses=0.02, times_out=0.03, repeats=0.03, slow_ms=8, late_ms=1_500, skew=2)


@contextmanager
def a_later_fold() -> Generator[None]:
    """A fold version that this program does not have yet, until the end of the block."""
    FOLDS[NEWEST_FOLD + 1] = {**FOLDS[NEWEST_FOLD], Sent: (send.needs_sent, step_sent_later)}
    try:
        yield
    finally:
        del FOLDS[NEWEST_FOLD + 1]


def step_sent_later(state: ShardState, by: int, via: int, sent: Sent) -> None:
    """What a later version might do: stamps that leave a little room. Owners on the old fold would differ."""
    before = state.streams[by, sent.to]
    at = before.at if before else 0
    send.step_sent(state, by, via, sent)
    stream = state.streams[by, sent.to]
    if stream is not None and stream.at != at:
        stream.at += 1
