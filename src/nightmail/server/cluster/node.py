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

import asyncio
import hashlib
import os
import random
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path

from nightmail.api.app import Surroundings, app
from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.answer_lines import AnswerLines
from nightmail.engine.cluster.cassandra.init import decided
from nightmail.engine.cluster.cassandra.nodes import CassandraNodes, NodeSeen
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.store import CassandraStore
from nightmail.engine.cluster.desk import ClusterDesk
from nightmail.engine.cluster.kafka.log import KafkaLog
from nightmail.engine.cluster.kafka.membership import GroupMembership
from nightmail.engine.cluster.kafka.topics import count_shards
from nightmail.engine.cluster.links.exchange import Exchange
from nightmail.engine.cluster.links.grpc_links import GrpcLinks
from nightmail.engine.memory import MemoryRegistry
from nightmail.engine.ports import EngineError
from nightmail.gateway.door import door
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.requests import HttpPlaces
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.forms import Form
from nightmail.server.calls import NodeCalls
from nightmail.server.code_webhook import deliver_by
from nightmail.server.config import Config
from nightmail.server.fallen import Guard
from nightmail.server.heart import clock, pace
from nightmail.server.listening_socket import ListeningSocket
from nightmail.server.media import NodeMedia
from nightmail.server.memory import Collector
from nightmail.server.observe import Figures, log, log_refusals
from nightmail.server.operator import operator_token
from nightmail.server.private_files import make_private
from nightmail.server.pushes import NodePushes

from .credentials import credentials_of
from .shards import OwnedShards
from .view import ClusterNodeView

TICK_S = 0.025
SECOND_TICKS = 40
MINUTE_TICKS = 2_400


class ClusterNode:
    """Start it, use it, stop it. `fell` is done, with an exception, if it cannot go on."""

    def __init__(self, config: Config, newest_fold: int = NEWEST_FOLD) -> None:
        self.config, self._newest_fold = config, newest_fold
        self.name, self.folder = config.server.node, Path(config.data.folder)
        self.figures, self.collector = Figures(), Collector()
        self.started_at = clock()
        self.draining = False
        self.fell: asyncio.Future[None]
        self._flushing = False
        self._ticks = 0
        self._closed = False
        self._closers: list[Callable[[], object]] = []

    async def start(self) -> None:
        """Returns when it can be connected to. Raises EngineError or CannotListen, each one sentence."""
        self._loop = loop = asyncio.get_running_loop()
        self._guard = Guard(loop.create_future())
        self.fell = self._guard.fell
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
        found = await self._loop.run_in_executor(None, count_shards, config.kafka)
        if found != shards:
            raise EngineError(f"the topic {config.kafka.topic} has {found} partitions, and the cluster {shards} shards")
        store = await CassandraStore.open(session, config.cassandra, values["buckets"], config.loop.notes_ms)
        self.log = KafkaLog(config.kafka, shards, self._post, partial(self._trouble, "the log"))
        self._closers.append(self.log.close)
        self.nodes = await CassandraNodes.join(session, pace, self._on_nodes)
        self.links = GrpcLinks(self._take, self._guard, credentials_of(config.cluster))
        self.exchange = Exchange(self.nodes.number, shards, self.links.send, self._soon)
        self.desk = desk = ClusterDesk(
            self.log, self.exchange, AnswerLines(self.nodes.number, os.urandom, pace), clock, pace
        )
        self.calls = calls = NodeCalls(config, desk, self._post, self._soon)
        self._closers.append(calls.close)
        registry, form = MemoryRegistry(config.gateway.silence_ms), Form(config.form, config.fold)
        # Without a registry that all nodes share nobody knows who is connected elsewhere: no node pushes.
        pushes = NodePushes(
            config.push, config.http2, config.waker, desk, registry, calls.dispatch, self._post, self._soon
        )
        self._closers.append(pushes.close)
        self.gateway = gateway = Gateway(
            desk, registry, form, config.gateway, clock, pace, self.name, self._soon, random.random, None, config.groups
        )
        self.media = media = NodeMedia(
            config.media, config.media_limits, config.fold, self.folder, desk, self._post, self._soon,
            lambda: gateway.pressed,
        )  # fmt: skip
        self._closers.append(media.close)
        desk.attend(gateway)
        self.exchange.attend(gateway, desk.take_answers, desk.owner_changed)
        self.shards = OwnedShards(
            shards, self.log, store, self.exchange, self.nodes, config.loop, config.fold, self._newest_fold,
            self.figures, self._post, calls.on_call, media.keeper.on_bytes, self._guard.fall,
        )  # fmt: skip
        self._closers.append(self.shards.close)
        await calls.start(self.folder)
        self.view = view = ClusterNodeView(self)
        application = app(
            Surroundings(
                desk=desk, schedules=desk, webhooks=calls.webhooks, pushes=pushes.service, presence=None,
                media=media.service, form=form, limits=config.http,
                operator_digest=hashlib.sha256(token.encode()).digest(), secret=config.accounts.secret.encode(),
                deliver=deliver_by(calls.codes) if calls.codes else None, open_metrics=config.operator.open_metrics,
                soon=self._soon, on_registered=lambda account: gateway.budgets.registered(account, pace()),
                clock=clock, clock_seen=self.clock_seen, handle_kept_ms=config.fold.handle_kept_ms, pace=pace,
                not_ready=self.not_ready, scrape=view.scrape, alerts=view.alerts, view=view,
                version=version("nightmail"),
            )
        )  # fmt: skip
        doors = door(gateway, Proxies(config.server.trusted_proxies), HttpPlaces(config.http.address_connections))
        self.listener = ListeningSocket(config.server, application, doors, config.http.connections)
        await self.listener.start()
        port = await self.links.start(f"{config.cluster.node_host}:{config.cluster.node_port}")
        address = config.cluster.node_address or f"{config.cluster.node_host}:{port}"
        await self.nodes.announce(
            NodeSeen(self.name, self.nodes.number, address, self._newest_fold, self.started_at, self.url)
        )
        self.membership = GroupMembership(
            config.kafka, self.name, self._post, self.shards.gain, self.shards.lose, partial(self._trouble, "the group")
        )
        self._closers.append(self.membership.close)
        self._tick()
        await self._until(lambda: not self.orphaned and self.shards.is_settled, config.server.save_ms)

    @property
    def url(self) -> str:
        scheme = "https" if self.config.server.tls_cert_file else "http"
        host = self.config.server.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.listener.port}"

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
        self.draining = True
        self.listener.close()
        self.gateway.stop(pace())
        if not await self._until(lambda: self.gateway.stopped and self.listener.drained, server.drain_ms):
            log.warning("cut off those who did not leave in time", extra={"connections": self.gateway.connections})
            self.listener.abort()
        await self._until(lambda: self.desk.is_idle, server.save_ms)
        self.shards.save()
        await self._until(lambda: self.shards.idle, server.save_ms)
        await self._close()
        log.info("stopped")

    async def _until(self, so: Callable[[], bool], most_ms: int) -> bool:
        deadline = pace() + most_ms
        while not (reached := so()) and pace() < deadline and not self.fell.done():  # noqa: ASYNC110 (the ticks do it)
            await asyncio.sleep(TICK_S)
        return reached

    async def _close(self) -> None:
        if self._closed:
            return
        self._closed = self._guard.closed = True
        for close in reversed(self._closers):
            await self._loop.run_in_executor(None, close)
        if hasattr(self, "links"):
            await self.links.close()
        if hasattr(self, "nodes"):
            await self.nodes.leave()
        if hasattr(self, "_session"):
            await self._session.close()

    # --- turns --------------------------------------------------------------------------------

    def _soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._guard, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.gateway.flush()
        self.exchange.flush()

    def _tick(self) -> None:
        self._loop.call_later(TICK_S, self._guard, self._tick)
        now = pace()
        self._ticks += 1
        self.shards.tick()
        self.desk.tick()
        self.gateway.tick(now)
        self.nodes.tick()
        self.calls.dispatch.tick()
        self.media.keeper.tick()
        self.exchange.announce(again=self._ticks % SECOND_TICKS == 0)
        self.gateway.flush()
        self.exchange.flush()
        if self._ticks % MINUTE_TICKS == 0:
            log_refusals(self.gateway.counters)

    def _post(self, callback: Callable[[], None]) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._guard, callback)

    def _trouble(self, what: str, why: str) -> None:
        log.warning("an engine says that something is wrong; it is tried again", extra={"part": what, "why": why})
