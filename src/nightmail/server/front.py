"""Everything of a node above its engines: calls, pushes, blobs, gateway, HTTP, figures; alone and in a cluster alike.

Knows:   the settings of each part, and their order within a tick.
Touches: those parts; the one listening socket.
Never:   knows what engines there are: `node.py` and `cluster/node.py` do.
"""

from __future__ import annotations

import hashlib
import random
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from prometheus_client.core import Metric

from nightmail.api.app import Surroundings, app
from nightmail.api.operator.routes import OperatorView
from nightmail.engine.cluster.desk import ClusterDesk
from nightmail.engine.desk import LoopDesk
from nightmail.engine.ports import Presence, Registry
from nightmail.gateway.door import door
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.requests import HttpPlaces
from nightmail.model.clock import ClockSeen
from nightmail.model.forms import Form
from nightmail.model.ledger import CopyLedger

from .alerts.node_alerts import NodeAlerts
from .calls import NodeCalls
from .code_webhook import deliver_by
from .config import Config, ServerSettings
from .event_turns import EventTurns
from .heart import clock, pace
from .listening_socket import ListeningSocket
from .media import NodeMedia
from .memory import Collector, trim
from .message_counts import MessageCounts
from .metrics import Metrics
from .observe import Figures, log, log_refusals
from .pushes import NodePushes
from .sampling import Sampling
from .shard_totals import ShardTotals

SECOND_S, RARELY_S = 1, 30
"""How often what changes slowly is looked at, and what changes more slowly still."""


class NodeFront(EventTurns):
    """Start it, use it, stop it. `fell` is done, with an exception, if it cannot go on."""

    def __init__(self, config: Config, newest_fold: int) -> None:
        super().__init__()
        self.config, self._newest_fold = config, newest_fold
        self.name = config.server.node or ServerSettings().node
        self.figures, self.collector = Figures(), Collector()
        self.draining = False
        self.started_at = clock() / 1000
        self._ticks = 0
        self.calls: NodeCalls | None = None
        self.pushes: NodePushes | None = None
        self.media: NodeMedia | None = None
        self.alerts: NodeAlerts | None = None
        self.letter_counts: Mapping[str, int] = {}
        """Dead letters by error, as of a second ago."""

    # --- what an engine's node says -------------------------------------------------------------

    @abstractmethod
    def not_ready(self) -> list[str]:
        """Why no messages are taken; empty if they are."""

    @property
    @abstractmethod
    def folder(self) -> Path: ...

    @abstractmethod
    def clock_seen(self) -> ClockSeen: ...

    @abstractmethod
    def totals(self) -> ShardTotals: ...

    @abstractmethod
    def counted_ledger(self) -> CopyLedger:
        """What has ended, in counts that only grow."""

    @abstractmethod
    def engine_metrics(self) -> Iterator[Metric]:
        """Those that only nodes with these engines have."""

    @abstractmethod
    def _tick_engines(self) -> None: ...

    @abstractmethod
    def _each_second(self) -> None: ...

    @abstractmethod
    def _rarely(self) -> None: ...

    # --- starting -------------------------------------------------------------------------------

    def _make_front(
        self, desk: LoopDesk | ClusterDesk, registry: Registry, presence: Presence | None, folder: Path, *, wakes: bool
    ) -> None:
        """`wakes`: the registry knows every connection, so that devices without one can be woken."""
        config = self.config
        self.presence, self._desk = presence, desk
        self._form = form = Form(config.form, config.fold)
        self.calls = calls = NodeCalls(config, desk, self._post, self._soon)
        self.pushes = pushes = NodePushes(
            config.push, config.http2, config.waker, desk, registry, calls.dispatch, self._post, self._soon
        )
        self.gateway = gateway = Gateway(
            desk, registry, form, config.gateway, clock, pace, self.name, self._soon, random.random,
            (presence, config.presence_limits) if presence else None, config.groups, pushes.waker if wakes else None,
        )  # fmt: skip
        self.media = NodeMedia(
            config.media, config.media_limits, config.fold, folder, desk, self._post, self._soon,
            lambda: gateway.pressed,
        )  # fmt: skip

    def _make_figures(self, counts: MessageCounts) -> None:
        """Metrics, their history, and alerts. The engines must be there."""
        assert self.calls
        self.message_counts = counts
        self.metrics = Metrics(self)
        self.alerts = NodeAlerts(
            self.config.alerts, self.name, self.calls.dispatch, self.metrics.judged, clock, pace
        )  # fmt: skip
        self.sampling = Sampling(self)

    def _make_listener(self, token: str, secret: str, view: OperatorView) -> None:
        config, gateway, desk = self.config, self.gateway, self._desk
        assert self.calls and self.pushes and self.media and self.alerts
        application = app(
            Surroundings(
                desk=desk,
                schedules=desk,
                webhooks=self.calls.webhooks,
                pushes=self.pushes.service,
                presence=self.presence,
                media=self.media.service,
                form=self._form,
                limits=config.http,
                operator_digest=hashlib.sha256(token.encode()).digest(),
                secret=secret.encode(),
                deliver=deliver_by(self.calls.codes) if self.calls.codes else None,
                open_metrics=config.operator.open_metrics,
                soon=self._soon,
                on_registered=lambda account: gateway.budgets.registered(account, pace()),
                clock=clock,
                clock_seen=self.clock_seen,
                handle_kept_ms=config.fold.handle_kept_ms,
                pace=pace,
                not_ready=self.not_ready,
                scrape=self.metrics.scrape,
                alerts=self.alerts.show,
                view=view,
                version=version("nightmail"),
            )
        )
        doors = door(gateway, Proxies(config.server.trusted_proxies), HttpPlaces(config.http.address_connections))
        self.listener = ListeningSocket(config.server, application, doors, config.http.connections)

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def url(self) -> str:
        scheme = "https" if self.config.server.tls_cert_file else "http"
        host = self.config.server.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    # --- ticks ----------------------------------------------------------------------------------

    def _on_tick(self, late_ms: float) -> None:
        self.figures.lag.add(late_ms)
        self.gateway.press(int(late_ms), self.figures.take_slowest_ms(time.monotonic_ns()))
        self._tick_engines()
        if self.calls:
            self.calls.dispatch.tick()
        if self.alerts:
            self.alerts.tick()
        if self.pushes:
            self.pushes.waker.tick()
        if self.media:
            self.media.keeper.tick()
        self.gateway.tick(pace())
        self.collector.end_turn()
        self._ticks += 1
        if self._ticks % round(SECOND_S / self.TICK_S) == 0:
            self.listener.refresh()
            self.sampling.take()
            self._each_second()
        if self._ticks % round(RARELY_S / self.TICK_S) == 0:
            log_refusals(self.gateway.counters)
            self._event_loop.run_in_executor(None, trim)
            self._rarely()

    # --- stopping -------------------------------------------------------------------------------

    async def _send_away(self) -> None:
        """Take no connection any more, and send devices elsewhere."""
        self.draining = True
        self.listener.close()
        self.gateway.stop(pace())
        if not await self._until(lambda: self.gateway.stopped and self.listener.drained, self.config.server.drain_ms):
            log.warning("cut off those who did not leave in time", extra={"connections": self.gateway.connections})
            self.listener.abort()

    def _close_front(self) -> None:
        for part in (self.alerts, self.calls, self.pushes, self.media):
            if part:
                part.close()
