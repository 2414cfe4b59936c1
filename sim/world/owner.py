"""An owner in the simulated world: the real one, driven at its own pace, and watched.

Knows:   whether its owner was replaced and does not know it: then it is a zombie.
Touches: the real owner, by `tick`; the world, by counting what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nightmail.engine.cluster.owner import Owner, OwnerWatcher
from nightmail.engine.cluster.ports import Follower, OwnerQuestions
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.loop import Loop
from nightmail.engine.ports import Checkpoint, EngineError, Failed, Offered, Rows, Stored, TooNew
from nightmail.engine.trace import Tracer
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.effects import Call
from nightmail.model.group_questions import GroupAnswer, GroupQuestion, ToldSoFar
from nightmail.model.push_rows import PushSeen
from nightmail.model.rows import Account, KnownAccounts, PendingReceipt
from nightmail.model.traces import Trace
from nightmail.model.words import Lane, PushPlatform
from sim.faults.counted_rows import CountedRows
from sim.faults.partition import SimSharedLog
from sim.judges.shadow import ShadowRows
from sim.judges.strict import StrictState

from .poison import Poison
from .world import Broken

if TYPE_CHECKING:
    from .cluster import Cluster

WATCH_EVERY = 8


class WatchedOwner(OwnerWatcher):
    """One shard on one node, from its takeover to its end."""

    def __init__(self, cluster: Cluster, shard: int, node: int) -> None:
        self.cluster, self.shard, self.node = cluster, shard, node
        self.world = cluster.world
        self._pace_ms = self.world.chance.choice((5, 25))
        fold = cluster.newest_fold[node]
        self.owner = Owner(
            shard, WatchedLog(self), self._open_rows, cluster, cluster, cluster,
            new_state=lambda: StrictState(shard, cluster.shards, fold, WATCH_EVERY),
            clock=lambda: cluster.clock(node), pace=lambda: self.world.now, entropy=self.world.chance.randbytes,
            limits=cluster.loop_limits, forwarder_limits=cluster.forwarder_limits, watcher=self,
            new_tracer=lambda rows: Tracer(rows, lambda job: job(), lambda done: done()),
        )  # fmt: skip
        self._run()

    @property
    def is_zombie(self) -> bool:
        return self.cluster.owners[self.shard] is not self

    @property
    def alive(self) -> bool:
        return self.owner.alive

    @property
    def loop(self) -> Loop | None:
        return self.owner.loop

    @property
    def rows(self) -> Rows | None:
        return self.owner.rows

    @property
    def mailboxes(self) -> OwnerQuestions | None:
        """What a node may ask; counted where it knows less than the device that asks."""
        mailboxes = self.owner.mailboxes
        return CountedMailboxes(self, mailboxes) if mailboxes and self.alive else None

    def head(self, device: int, lane: Lane) -> int:
        """The newest number of a queue, as far as is known here."""
        mailbox = self.loop.state.mailboxes.rows.get(device) if self.loop else None
        return mailbox.lanes[lane].head if mailbox else 0

    def end(self) -> None:
        self.owner.end()

    def _run(self) -> None:
        self.owner.tick()
        if self.alive:
            self.world.later(self.world.between(1, self._pace_ms), self._run)

    def _open_rows(self, done: Callable[[Rows | Failed], None]) -> None:
        def opened(rows: WideRows | Failed) -> None:
            if isinstance(rows, Failed):
                done(rows)
            else:
                done(ShadowRows(CountedRows(rows, self.world), self.cluster.checkpoints[self.shard]))

        WideRows.open(self.cluster.store, self.shard, opened)

    # --- what the owner tells its node ------------------------------------------------------------

    def on_poison(self, offset: int, error: Exception) -> None:
        if not isinstance(error, Poison):
            raise error

    def on_call(self, call: Call) -> None:
        self.cluster.on_call(call)

    def on_wake(self, device: int) -> None:
        self.cluster.on_wake(self.node, device)

    def on_saved(self, checkpoint: Checkpoint) -> None:
        if self.is_zombie:
            self.world.hit("zombie saved")
        if any(self.cluster.partitions[shard].is_down for shard, _, _ in checkpoint.forwards):
            self.world.hit("checkpoint saved forwards to a log that is down")

    def on_fell_behind(self) -> None:
        self.world.hit("fell behind the log")

    def on_fold_raised(self, fold: int) -> None:
        self.world.hit("fold raised by all")

    def on_stopped(self, why: EngineError) -> None:
        assert isinstance(why, TooNew), why
        self.world.hit("old fold stopped")
        if not self.is_zombie:
            self.cluster.take_over(self.shard)


class WatchedLog(SimSharedLog):
    """The shared log, as one owner uses it: counts what it does after it was replaced."""

    def __init__(self, owner: WatchedOwner) -> None:
        cluster = owner.cluster
        super().__init__(cluster.world, cluster.partitions, cluster.log_faults)
        self._owner = owner

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        if shard != self._owner.shard and self._owner.is_zombie:
            self._world.hit("zombie forwarded")
        super().append(shard, at, records, done)

    def follow(self, shard: int, after: int, follower: Follower) -> Callable[[], None]:
        return super().follow(shard, after, WatchedFollower(self._owner, follower))


class WatchedFollower:
    def __init__(self, owner: WatchedOwner, follower: Follower) -> None:
        self._owner, self._follower = owner, follower
        self.trimmed_away = follower.trimmed_away

    def take(self, batch: Stored) -> None:
        if self._owner.is_zombie:
            self._owner.world.hit("zombie folded")
        self._follower.take(batch)


class CountedMailboxes:
    """The questions to one owner. Changes nothing that passes, and judges how new an account is that is shown."""

    def __init__(self, owner: WatchedOwner, mailboxes: OwnerQuestions) -> None:
        self._owner, self._mailboxes = owner, mailboxes
        self.schedule, self.schedules = mailboxes.schedule, mailboxes.schedules
        self.letter_counts, self.letters, self.letter = mailboxes.letter_counts, mailboxes.letters, mailboxes.letter

    def offer(
        self, device: int, lane: Lane, after: int, limit: int, limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:  # fmt: skip
        if self._owner.head(device, lane) < after:
            self._owner.world.hit("owner behind client")
        self._mailboxes.offer(device, lane, after, limit, limit_bytes, then)

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        self._mailboxes.receipts(device, after, limit, then)

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        shard, loop, world = self._owner.shard, self._owner.loop, self._owner.world
        durable = self._owner.cluster.partitions[shard].last
        if loop and loop.state.offset < durable:
            world.hit("account asked of an owner that lags")

        def shown(row: Account | None) -> None:
            assert self._owner.loop is not None
            if (folded := self._owner.loop.state.offset) < durable:
                raise Broken("accounts are fresh", f"{account:x} is shown as of {folded}, but {durable} was durable")
            then(row)

        self._mailboxes.account(account, shown)

    def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
        self._mailboxes.relations(account, then)

    def about_group(self, question: GroupQuestion, then: Callable[[GroupAnswer], None]) -> None:
        self._mailboxes.about_group(question, then)

    def high_heads(self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]) -> None:
        self._mailboxes.high_heads(devices, told, then)

    def push(self, device: int, then: Callable[[PushSeen | None], None]) -> None:
        self._mailboxes.push(device, then)

    def push_platforms(self, devices: Sequence[int], then: Callable[[Mapping[int, PushPlatform]], None]) -> None:
        self._mailboxes.push_platforms(devices, then)

    def blob(self, name: BlobId, device: int, then: Callable[[BlobSeen | None], None]) -> None:
        self._mailboxes.blob(name, device, then)

    def backups(self, account: int, then: Callable[[Sequence[tuple[BlobId, BlobSeen]]], None]) -> None:
        self._mailboxes.backups(account, then)

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        self._mailboxes.trace(message_id, then)

    def note_connection(self, device: int, *, here: bool) -> None:
        self._mailboxes.note_connection(device, here=here)
