"""One node: heart, gateway and HTTP on one event loop. The one place where the parts meet.

    folder → rows → log → loop → desk → gateway ┐
                                      → api     ┴ → one listening socket

Knows:   the order of starting and stopping, and of the parts within a turn.
Touches: everything, once.
Never:   folds, frames or answers anything itself.

A part that has submitted something calls `soon`; at the end of that turn of the event loop everything is
flushed together. Every 50 ms all parts are told the time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from nightmail.api.app import Surroundings, app
from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.memory import MemoryRegistry
from nightmail.gateway.door import door
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.requests import HttpPlaces
from nightmail.model.forms import Form

from .alerts.node_alerts import NodeAlerts
from .calls import NodeCalls
from .code_webhook import deliver_by
from .config import Config, ServerSettings
from .fallen import Guard
from .heart import Heart, clock, pace
from .listening_socket import ListeningSocket
from .media import NodeMedia
from .memory import Collector, trim
from .message_counts import MessageCounts
from .metrics import Metrics
from .observe import Figures, log, log_refusals
from .operator import operator_token
from .operator_view import NodeView
from .private_files import make_private
from .pushes import NodePushes
from .sampling import Sampling
from .secret_files import secret_from

SECRET_FILE = "accounts.secret"  # noqa: S105 (a name)
TICK_S = 0.05
SHORT_TICK_S = 0.02
"""The event loop's timers, and the clock, may be off by a little: a tick soon after another is left out."""
RAISE_MS = 5_000
"""How long a start waits until the shard folds with the newest version: some requests are refused before."""
SLOW_TICKS = 20
"""Ticks between two looks at what changes slowly."""


DEPTH_TICKS = 600
"""Likewise, for half a minute."""


class Node:
    """Start it, use it, stop it. `fell` is done, with an exception, if it cannot go on."""

    def __init__(self, config: Config, newest_fold: int = NEWEST_FOLD) -> None:
        """`newest_fold`: see `Heart`."""
        self.config, self._newest_fold = config, newest_fold
        self.name = config.server.node or ServerSettings().node
        self.figures = Figures()
        self.collector = Collector()
        self.draining = False
        self.started_at = clock() / 1000
        self.fell: asyncio.Future[None]
        self._flushing = False
        self._tick_at = 0.0
        self._ticks = 0
        self._ticking: asyncio.TimerHandle | None = None
        self._closed = False
        self.calls: NodeCalls | None = None
        self.pushes: NodePushes | None = None
        self.media: NodeMedia | None = None
        self.alerts: NodeAlerts | None = None
        self.letter_counts: Mapping[str, int] = {}
        """Dead letters by error, as of a second ago."""

    async def start(self) -> None:
        """Returns when it can be connected to. Raises EngineError or CannotListen, each one sentence."""
        self._event_loop = loop = asyncio.get_running_loop()
        self._guard = Guard(loop.create_future())
        self.fell = self._guard.fell
        config = self.config
        self.desk = desk = LoopDesk(os.urandom, pace)
        folder = Path(config.data.folder)
        if opened := make_private(folder):
            log.warning("the data folder was open to others; it is closed to them", extra={"names": opened[:10]})
        self.heart = heart = Heart(config, self.figures, self._post, self._later, desk.on_effects, self._newest_fold)
        try:
            self.calls = calls = NodeCalls(config, desk, self._post, self._soon)
            form = Form(config.form, config.fold)
            registry = MemoryRegistry(config.gateway.silence_ms)
            self.pushes = pushes = NodePushes(
                config.push, config.http2, config.waker, desk, registry, calls.dispatch, self._post, self._soon
            )
            self.gateway = gateway = Gateway(
                desk, registry, form, config.gateway, clock, pace, self.name,
                self._soon, random.random, (heart.presence, config.presence_limits) if heart.presence else None,
                config.groups, pushes.waker,
            )  # fmt: skip
            self.media = media = NodeMedia(
                config.media, config.media_limits, config.fold, heart.folder, desk, self._post, self._soon,
                lambda: gateway.pressed,
            )  # fmt: skip
            desk.attend(
                heart.loop, gateway, tracer=heart.tracer, on_call=calls.on_call, on_wake=pushes.waker.wake,
                on_bytes=media.keeper.on_bytes,
            )  # fmt: skip
            heart.recover()
            # Only now: a folder that is refused gets no new files.
            token = operator_token(config.operator, heart.folder)
            await calls.start(heart.folder)
            pushes.start(heart.folder)
            secret = secret_from(config.accounts.secret, heart.folder / SECRET_FILE)
            self.message_counts = MessageCounts(lambda device: registry.find(device, pace()) is not None)
            self.message_counts.skip(heart.loop.state)
            self.metrics = Metrics(self)
            self.alerts = alerts = NodeAlerts(
                config.alerts, self.name, calls.dispatch, self.metrics.judged, clock, pace
            )
            self.sampling = Sampling(self)
            application = app(
                Surroundings(
                    desk=desk,
                    schedules=desk,
                    webhooks=calls.webhooks,
                    pushes=pushes.service,
                    presence=heart.presence,
                    media=media.service,
                    form=form,
                    limits=config.http,
                    operator_digest=hashlib.sha256(token.encode()).digest(),
                    secret=secret.encode(),
                    deliver=deliver_by(calls.codes) if calls.codes else None,
                    open_metrics=config.operator.open_metrics,
                    soon=self._soon,
                    on_registered=lambda account: gateway.budgets.registered(account, pace()),
                    clock=clock,
                    clock_seen=lambda: heart.loop.clock_seen,
                    handle_kept_ms=config.fold.handle_kept_ms,
                    pace=pace,
                    not_ready=self.not_ready,
                    scrape=self.metrics.scrape,
                    alerts=alerts.show,
                    view=NodeView(self),
                    version=version("nightmail"),
                )
            )
            doors = door(gateway, Proxies(config.server.trusted_proxies), HttpPlaces(config.http.address_connections))
            self.listener = ListeningSocket(config.server, application, doors, config.http.connections)
            self._tick_at = loop.time()
            self._tick()
            await self._until(lambda: heart.is_raised, RAISE_MS)
            await self.listener.start()
        except BaseException:
            self._close()
            raise
        log.info("serving", extra={"node": self.name, "url": self.url, "folder": str(heart.folder)})

    @property
    def folder(self) -> Path:
        return self.heart.folder

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def url(self) -> str:
        scheme = "https" if self.config.server.tls_cert_file else "http"
        host = self.config.server.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def not_ready(self) -> list[str]:
        """Why no messages are taken; empty if they are."""
        reasons: list[str] = []
        if self.draining:
            reasons.append("this server is stopping")
        if not self.heart.loop.ready:
            reasons.append("what is stored is still being read")
        if self.heart.log.tight:
            reasons.append(self.heart.log.why_tight)
        if self.heart.loop.overloaded:
            reasons.append("too much waits to be saved")
        return reasons

    # --- stopping -----------------------------------------------------------------------------

    async def stop(self) -> None:
        """Send devices elsewhere, answer what was asked, write everything down, let go of the folder."""
        if self._closed:
            return
        server, loop = self.config.server, self.heart.loop
        log.info("stopping", extra={"connections": self.gateway.connections})
        self.draining = True
        self.listener.close()
        self.gateway.stop(pace())
        if not await self._until(lambda: self.gateway.stopped and self.listener.drained, server.drain_ms):
            log.warning("cut off those who did not leave in time", extra={"connections": self.gateway.connections})
            self.listener.abort()
        # What was submitted is made durable; then a checkpoint spares the next start the replay.
        if await self._until(lambda: loop.idle, server.save_ms):
            loop.save(at_once=True)
            await self._until(lambda: loop.idle, server.save_ms)
        if not loop.idle:
            log.warning("stopped without a last checkpoint; the next start reads the log instead")
        self._close()
        log.info("stopped")

    async def _until(self, so: Callable[[], bool], most_ms: int) -> bool:
        deadline = pace() + most_ms
        while not (reached := so()) and pace() < deadline and not self.fell.done():  # noqa: ASYNC110 (the ticks do it)
            await asyncio.sleep(TICK_S / 2)
        return reached

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = self._guard.closed = True
        if self._ticking:
            self._ticking.cancel()
        if self.alerts:
            self.alerts.close()
        if self.calls:
            self.calls.close()
        if self.pushes:
            self.pushes.close()
        if self.media:
            self.media.close()
        self.heart.close()

    # --- turns --------------------------------------------------------------------------------

    def _soon(self) -> None:
        """Something was submitted or is to be sent: flush at the end of this turn."""
        if not self._flushing:
            self._flushing = True
            self._event_loop.call_soon(self._guard, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.gateway.flush()
        self.heart.loop.flush()
        self.collector.end_turn()

    def _tick(self) -> None:
        loop = self._event_loop
        now = loop.time()
        late_ms = max(0.0, (now - self._tick_at) * 1000)
        self.figures.lag.add(late_ms)
        # When a slot of due items ends by the clock: what is due in it is then late by no more than the slot is long.
        wait_s = TICK_S - clock() / 1000 % TICK_S
        wait_s += TICK_S if wait_s < SHORT_TICK_S else 0.0
        self._tick_at = now + wait_s
        self._ticking = loop.call_later(wait_s, self._guard, self._tick)
        self.gateway.press(int(late_ms), self.figures.take_slowest_ms(time.monotonic_ns()))
        self.message_counts.look(self.heart.loop.state, pace())
        self.heart.loop.tick()
        self.heart.check()
        self.message_counts.skip(self.heart.loop.state)
        self.desk.tick()
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
        if self._ticks % SLOW_TICKS == 0:
            self.listener.refresh()
            self.heart.adopt_settings()
            self.sampling.take()
            self.desk.letter_counts(0, self._counted_letters)
        if self._ticks % DEPTH_TICKS == 0:
            self.message_counts.depths.follow(self.heart.loop.state)
            log_refusals(self.gateway.counters)
            self._event_loop.run_in_executor(None, trim)
            self.heart.remember_time()

    def _counted_letters(self, counts: Mapping[str, int]) -> None:
        self.letter_counts = counts

    def _post(self, callback: Callable[[], None]) -> None:
        """From any thread."""
        self._event_loop.call_soon_threadsafe(self._guard, callback)

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._event_loop.call_later(delay_ms / 1000, self._guard, callback)
