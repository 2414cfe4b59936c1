"""The shards that a node owns: taken over, driven, handed over.

Knows:   which are owned here, and since when each serves.
Touches: their owners.
Never:   asks whether it is still the owner: the group says so, sooner or later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial

from nightmail.core.state import ShardState
from nightmail.engine.cluster.links.exchange import Exchange
from nightmail.engine.cluster.owner import Owner, OwnerWatcher
from nightmail.engine.cluster.ports import Nodes, SharedLog
from nightmail.engine.cluster.store import WideStore
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.ports import Checkpoint, EngineError, Post, Rows
from nightmail.engine.trace import Tracer
from nightmail.engine.worker import Worker
from nightmail.model.clock import ClockSeen
from nightmail.model.effects import Call, LookForBytes, RemoveBytes
from nightmail.model.limits import FoldLimits
from nightmail.outlets.push.waker import PushWaker
from nightmail.server.heart import clock, pace
from nightmail.server.message_counts import MessageCounts
from nightmail.server.observe import Figures, LogWatcher, log
from nightmail.server.shard_totals import LedgerGrowth


class ShardWatcher(OwnerWatcher):
    """Writes one shard's events to the log lines and the figures; passes on what it asks for."""

    def __init__(self, shard: int, shards: OwnedShards) -> None:
        self._shard, self._shards = shard, shards
        self._log = LogWatcher(shards.figures, clock)

    def on_poison(self, offset: int, error: Exception) -> None:
        self._log.on_poison(offset, error)

    def on_trouble(self, why: str) -> None:
        self._log.on_trouble(why)

    def on_clock(self, seen: ClockSeen) -> None:
        self._log.on_clock(seen)

    def on_saved(self, checkpoint: Checkpoint) -> None:
        self._log.on_saved(checkpoint)

    def on_repeated(self) -> None:
        self._log.on_repeated()

    def on_fell_behind(self) -> None:
        log.warning("another owner is further: starting again from its checkpoint", extra={"shard": self._shard})

    def on_fold_raised(self, fold: int) -> None:
        log.info("every node supports a newer fold: raising it", extra={"shard": self._shard, "fold": fold})

    def on_limits_set(self, before: FoldLimits, after: FoldLimits) -> None:
        if before == FoldLimits():
            return
        names = [name for name in FoldLimits.__struct_fields__ if getattr(before, name) != getattr(after, name)]
        log.warning(
            "the limits of a shard change to this node's; if that repeats, the nodes have different settings",
            extra={"shard": self._shard, "limits": names},
        )

    def on_call(self, call: Call) -> None:
        self._shards.on_call(call)

    def on_wake(self, device: int) -> None:
        self._shards.waker.wake(device)

    def on_bytes(self, effect: RemoveBytes | LookForBytes) -> None:
        self._shards.on_bytes(effect)

    def on_stopped(self, why: EngineError) -> None:
        self._shards.on_stopped(why)


class OwnedShards:
    def __init__(
        self, count: int, log: SharedLog, store: WideStore, exchange: Exchange, nodes: Nodes, limits: LoopLimits,
        fold_limits: FoldLimits, newest_fold: int, figures: Figures, counts: MessageCounts, post: Post,
        on_call: Callable[[Call], None], waker: PushWaker, on_bytes: Callable[[RemoveBytes | LookForBytes], None],
        on_stopped: Callable[[EngineError], None],
    ) -> None:  # fmt: skip
        self._count, self._log, self._store, self._exchange, self._nodes = count, log, store, exchange, nodes
        self._limits, self._fold_limits, self._newest_fold, self._post = limits, fold_limits, newest_fold, post
        self.figures, self.on_call, self.on_bytes, self.on_stopped = figures, on_call, on_bytes, on_stopped
        self._counts, self.growth, self.waker = counts, LedgerGrowth(), waker
        self._aside = Worker(post, "aside")
        self._letters: dict[int, Mapping[str, int]] = {}
        """Shard → its dead letters by error."""
        self._since: dict[int, int] = {}
        """Shard → when it was gained, of those that do not serve yet."""

    @property
    def owners(self) -> dict[int, Owner]:
        return self._exchange.owners

    def gain(self, shards: Collection[int]) -> None:
        for shard in shards:
            if shard not in self.owners:
                self._since[shard] = pace()
                self.waker.begin_grace(shard)  # Devices of the node that had it are on their way.
                self.owners[shard] = self._make(shard)
        log.info("shards gained", extra={"gained": sorted(shards), "owned": len(self.owners)})

    def lose(self, shards: Collection[int]) -> None:
        for shard in shards:
            self._since.pop(shard, None)
            self._counts.forget(shard, self._count)
            self.growth.forget(shard)
            if owner := self.owners.pop(shard, None):
                owner.end()
        log.info("shards lost", extra={"lost": sorted(shards), "owned": len(self.owners)})

    def _make(self, shard: int) -> Owner:
        return Owner(
            shard, self._log, partial(WideRows.open, self._store, shard), self._exchange, self._exchange, self._nodes,
            new_state=lambda: ShardState(shard, self._count, self._newest_fold),
            clock=clock, pace=pace, entropy=os.urandom, limits=self._limits, watcher=ShardWatcher(shard, self),
            fold_limits=self._fold_limits, new_tracer=lambda rows: Tracer(rows, self._aside, self._post),
        )  # fmt: skip

    def tick(self) -> None:
        for shard, owner in list(self.owners.items()):
            self._tick(owner)
            if shard in self._since and owner.loop and owner.loop.ready:
                took_ms = pace() - self._since.pop(shard)
                log.info("a shard is served", extra={"shard": shard, "took_ms": took_ms})

    def _tick(self, owner: Owner) -> None:
        if owner.loop and owner.loop.ready:
            self._counts.look(owner.loop.state, pace())
        owner.tick()
        # What was read again after a takeover was counted by the owner before.
        if owner.loop and owner.loop.ready:
            self._counts.skip(owner.loop.state)
            self.growth.look(owner.loop.state)

    @property
    def serving(self) -> list[tuple[Loop, Rows]]:
        return [(own.loop, own.rows) for own in self.owners.values() if own.loop and own.loop.ready and own.rows]

    def letter_counts(self) -> dict[str, int]:
        """Dead letters by error, as they were when this was last asked."""
        for shard, own in self.owners.items():
            if own.mailboxes:
                own.mailboxes.letter_counts(shard, partial(self._letters.__setitem__, shard))
        counts = Counter[str]()
        for shard in self.owners:
            counts.update(self._letters.get(shard, {}))
        return dict(counts)

    @property
    def is_settled(self) -> bool:
        """Each goes by the fold and the limits that this node asked for."""
        return all(owner.is_settled for owner in self.owners.values())

    @property
    def idle(self) -> bool:
        """Everything durable is folded and nothing is being saved."""
        return all(owner.loop is None or owner.loop.idle for owner in self.owners.values())

    def save(self) -> None:
        """A last checkpoint spares the next owners the replay."""
        for owner in self.owners.values():
            if owner.loop:
                owner.loop.save(at_once=True)

    def close(self) -> None:
        for owner in self.owners.values():
            owner.end()
        self._aside.close()
