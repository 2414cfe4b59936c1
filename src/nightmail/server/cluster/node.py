"""A node of a cluster: gateway, HTTP and the owners of its shards on one event loop. Here the parts meet.

    Kafka ─► log ─► owners of this node's shards ─► exchange ─► other nodes
    Cassandra ─► rows ┘                                └─► desk ─► gateway, api ─► one listening socket

Knows:   the order of starting and stopping.
Touches: everything, once.
Never:   folds, frames or answers anything itself.

A turn is as in `server/node.py`. The engines are tried once at the start; after that, what fails is tried again by
those who need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from prometheus_client.core import Metric

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.answer_lines import AnswerLines
from nightmail.engine.cluster.cassandra.init import decided
from nightmail.engine.cluster.cassandra.nodes import CassandraNodes, NodeSeen
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.store import CassandraStore
from nightmail.engine.cluster.desk import ClusterDesk
from nightmail.engine.cluster.kafka.membership import GroupMembership
from nightmail.engine.cluster.kafka.topics import count_shards
from nightmail.engine.cluster.links.exchange import Exchange
from nightmail.engine.cluster.links.grpc_links import GrpcLinks
from nightmail.engine.ports import EngineError
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.ledger import CopyLedger
from nightmail.server.config import Config
from nightmail.server.front import NodeFront
from nightmail.server.heart import clock, pace
from nightmail.server.message_counts import MessageCounts
from nightmail.server.observe import log
from nightmail.server.operator import operator_token
from nightmail.server.private_files import make_private
from nightmail.server.pushes import derived
from nightmail.server.shard_totals import ShardTotals, add_up

from .credentials import credentials_of
from .registry import NodeRegistry
from .shards import OwnedShards
from .view import ClusterNodeView, cluster_metrics
from .watched_log import WatchedSharedLog


class ClusterNode(NodeFront):
    TICK_S = 0.025

    def __init__(self, config: Config, newest_fold: int = NEWEST_FOLD) -> None:
        super().__init__(config, newest_fold)
        self._closers: list[Callable[[], object]] = []

    async def start(self) -> None:
        """Returns when it can be connected to. Raises EngineError or CannotListen, each one sentence."""
        self._begin()
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise
        log.info("serving", extra={"node": self.name, "url": self.url, "number": self.nodes.number})

    async def _start(self) -> None:
        config = self.config
        make_private(self.folder)
        token = operator_token(config.operator, self.folder)
        self._session = session = await CassandraSession.connect(config.cassandra, self._guard)
        values = await decided(session)
        if not values.get("shards"):
            raise EngineError("this cluster is not made yet: run `nightmail cluster init`")
        self.shard_count = shards = values["shards"]
        found = await self._event_loop.run_in_executor(None, count_shards, config.kafka)
        if found != shards:
            raise EngineError(f"the topic {config.kafka.topic} has {found} partitions, and the cluster {shards} shards")
        store = await CassandraStore.open(session, config.cassandra, values["buckets"], config.loop.notes_ms)
        self.log = WatchedSharedLog(config.kafka, shards, self._post, partial(self._trouble, "the log"))
        self.log.figures = self.figures
        self._closers.append(self.log.close)
        self.nodes = await CassandraNodes.join(session, pace, self._on_nodes)
        self.links = GrpcLinks(self._take, self._guard, credentials_of(config.cluster))
        self.exchange = Exchange(self.nodes.number, shards, self.links.send, self._soon)
        self.desk = desk = ClusterDesk(
            self.log, self.exchange, AnswerLines(self.nodes.number, os.urandom, pace), clock, pace
        )
        self.registry = NodeRegistry(
            config.redis, self.nodes.number, self.exchange, config.gateway.silence_ms, self._guard
        )
        self._make_front(desk, self.registry.registry, None, self.folder, wakes=True)
        assert self.calls and self.pushes and self.media
        self._make_figures(MessageCounts(None))
        desk.attend(self.gateway)
        self.exchange.attend(self.gateway, desk.take_answers, desk.owner_changed)
        self.shards = OwnedShards(
            shards, self.log, store, self.exchange, self.nodes, config.loop, config.fold, self._newest_fold,
            self.figures, self.message_counts, self._post, self.calls.on_call, self.pushes.waker,
            self.media.keeper.on_bytes, self._guard.fall,
        )  # fmt: skip
        self._closers.append(self.shards.close)
        await self.calls.start(self.folder)
        self.pushes.start_with(config.push.secret or derived(config.accounts.secret))
        self._make_listener(token, config.accounts.secret, ClusterNodeView(self))
        await self.listener.start()
        port = await self.links.start(f"{config.cluster.node_host}:{config.cluster.node_port}")
        address = config.cluster.node_address or f"{config.cluster.node_host}:{port}"
        await self.nodes.announce(
            NodeSeen(self.name, self.nodes.number, address, self._newest_fold, int(self.started_at * 1000), self.url)
        )
        self.membership = GroupMembership(
            config.kafka, self.name, self._post, self.shards.gain, self.shards.lose, partial(self._trouble, "the group")
        )
        self._closers.append(self.membership.close)
        self._begin_ticks()
        await self._until(lambda: not self.orphaned and self.shards.is_settled, config.server.save_ms)

    @property
    def folder(self) -> Path:
        return Path(self.config.data.folder)

    def totals(self) -> ShardTotals:
        return add_up(self.shards.serving)

    def counted_ledger(self) -> CopyLedger:
        return self.shards.growth.total

    def engine_metrics(self) -> Iterator[Metric]:
        return cluster_metrics(self)

    @property
    def orphaned(self) -> int:
        """Shards without an owner that serves, as far as this node knows."""
        exchange, own = self.exchange, self.shards.owners
        return sum(
            own[shard].mailboxes is None if shard in own else exchange.owner_of(shard) is None
            for shard in range(self.shard_count)
        )

    def not_ready(self) -> list[str]:
        """Why no messages are taken; empty if they are."""
        reasons = ["this server is stopping"] if self.draining else []
        if orphaned := self.orphaned:
            reasons.append(f"{orphaned} of {self.shard_count} shards have no owner at the moment")
        return reasons

    def clock_seen(self) -> ClockSeen:
        """By the first shard that is served here."""
        loops = (owner.loop for owner in self.shards.owners.values())
        now = clock()
        return next(
            (loop.clock_seen for loop in loops if loop and loop.ready), ClockSeen(ClockState.BELIEVED, now, now)
        )

    def _on_nodes(self, others: Mapping[int, NodeSeen]) -> None:
        for gone in set(self.exchange.nodes) - set(others):
            self.exchange.forget(gone)
        self.exchange.nodes = list(others)
        self.links.connect({number: each.address for number, each in others.items()})
        self.exchange.announce(again=True)

    def _take(self, packet: bytes) -> None:
        self.exchange.take(packet)

    # --- stopping -----------------------------------------------------------------------------

    async def stop(self) -> None:
        """Send devices elsewhere, answer what was asked, write everything down, hand the shards over."""
        if self._closed:
            return
        server = self.config.server
        log.info("stopping", extra={"connections": self.gateway.connections, "shards": len(self.shards.owners)})
        await self._send_away()
        await self._until(lambda: self.desk.is_idle, server.save_ms)
        self.shards.save()
        await self._until(lambda: self.shards.idle, server.save_ms)
        await self._close()
        log.info("stopped")

    async def _close(self) -> None:
        if not self._end():
            return
        for close in reversed((self._close_front, *self._closers)):
            await self._event_loop.run_in_executor(None, close)
        if hasattr(self, "registry"):
            await self.registry.close()
        if hasattr(self, "links"):
            await self.links.close()
        if hasattr(self, "nodes"):
            await self.nodes.leave()
        if hasattr(self, "_session"):
            await self._session.close()

    # --- turns --------------------------------------------------------------------------------

    def _flush(self) -> None:
        self.gateway.flush()
        self.exchange.flush()
        self.collector.end_turn()

    def _tick_engines(self) -> None:
        self.shards.tick()
        self.desk.tick()
        self.nodes.tick()
        self.registry.tick()
        self.exchange.announce()
        self._soon()

    def _each_second(self) -> None:
        self.exchange.announce(again=True)

    def _rarely(self) -> None:
        # Each shard asks its log first.
        self.letter_counts = self.shards.letter_counts()
        for loop, _ in self.shards.serving:
            self.message_counts.depths.follow(loop.state)

    def _trouble(self, what: str, why: str) -> None:
        log.warning("an engine says that something is wrong; it is tried again", extra={"part": what, "why": why})
