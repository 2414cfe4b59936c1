"""One node: heart, gateway and HTTP on one event loop. The one place where the parts meet.

    folder → rows → log → loop → desk → gateway ┐
                                      → api     ┴ → one listening socket

Knows:   the order of starting and stopping, and of the parts within a turn.
Touches: everything, once.
Never:   folds, frames or answers anything itself.

A part that has submitted something calls `_soon`; at the end of that turn of the event loop everything is
flushed together (`event_turns.py`). Every 50 ms all parts are told the time. `front.py` has what is above the engines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from prometheus_client.core import Metric

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.memory import MemoryRegistry
from nightmail.model.clock import ClockSeen
from nightmail.model.ledger import CopyLedger

from .config import Config
from .folder_metrics import folder_metrics
from .front import NodeFront
from .heart import Heart, pace
from .message_counts import MessageCounts
from .observe import log
from .operator import operator_token
from .operator_view import NodeView
from .private_files import make_private
from .secret_files import secret_from
from .shard_totals import ShardTotals, add_up

SECRET_FILE = "accounts.secret"  # noqa: S105 (a name)
RAISE_MS = 5_000
"""How long a start waits until the shard folds with the newest version: some requests are refused before."""


class Node(NodeFront):
    def __init__(self, config: Config, newest_fold: int = NEWEST_FOLD) -> None:
        """`newest_fold`: see `Heart`."""
        super().__init__(config, newest_fold)

    async def start(self) -> None:
        """Returns when it can be connected to. Raises EngineError or CannotListen, each one sentence."""
        self._begin()
        config = self.config
        self.desk = desk = LoopDesk(os.urandom, pace)
        folder = Path(config.data.folder)
        if opened := make_private(folder):
            log.warning("the data folder was open to others; it is closed to them", extra={"names": opened[:10]})
        self.heart = heart = Heart(config, self.figures, self._post, self._later, desk.on_effects, self._newest_fold)
        try:
            registry = MemoryRegistry(config.gateway.silence_ms)
            self._make_front(desk, registry, heart.presence, heart.folder, wakes=True)
            assert self.calls and self.pushes and self.media
            desk.attend(
                heart.loop, self.gateway, tracer=heart.tracer, on_call=self.calls.on_call,
                on_wake=self.pushes.waker.wake, on_bytes=self.media.keeper.on_bytes,
            )  # fmt: skip
            heart.recover()
            # Only now: a folder that is refused gets no new files.
            token = operator_token(config.operator, heart.folder)
            await self.calls.start(heart.folder)
            self.pushes.start(heart.folder)
            secret = secret_from(config.accounts.secret, heart.folder / SECRET_FILE)
            self._make_figures(MessageCounts(lambda device: registry.seat_of(device, pace()) is not None))
            self.message_counts.skip(heart.loop.state)
            self._make_listener(token, secret, NodeView(self))
            self._begin_ticks()
            await self._until(lambda: heart.is_raised, RAISE_MS)
            await self.listener.start()
        except BaseException:
            self._close()
            raise
        log.info("serving", extra={"node": self.name, "url": self.url, "folder": str(heart.folder)})

    @property
    def folder(self) -> Path:
        return self.heart.folder

    def totals(self) -> ShardTotals:
        return add_up([(self.heart.loop, self.heart.rows)])

    def counted_ledger(self) -> CopyLedger:
        return self.heart.loop.state.ledger

    def engine_metrics(self) -> Iterator[Metric]:
        return folder_metrics(self.heart)

    def clock_seen(self) -> ClockSeen:
        return self.heart.loop.clock_seen

    def not_ready(self) -> list[str]:
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
        await self._send_away()
        # What was submitted is made durable; then a checkpoint spares the next start the replay.
        if await self._until(lambda: loop.idle, server.save_ms):
            loop.save(at_once=True)
            await self._until(lambda: loop.idle, server.save_ms)
        if not loop.idle:
            log.warning("stopped without a last checkpoint; the next start reads the log instead")
        self._close()
        log.info("stopped")

    def _close(self) -> None:
        if self._end():
            self._close_front()
            self.heart.close()

    # --- turns --------------------------------------------------------------------------------

    def _flush(self) -> None:
        self.gateway.flush()
        self.heart.loop.flush()
        self.collector.end_turn()

    def _tick_engines(self) -> None:
        self.message_counts.look(self.heart.loop.state, pace())
        self.heart.loop.tick()
        self.heart.check()
        self.message_counts.skip(self.heart.loop.state)
        self.desk.tick()

    def _each_second(self) -> None:
        self.heart.adopt_settings()
        self.desk.letter_counts(0, self._counted_letters)

    def _rarely(self) -> None:
        self.message_counts.depths.follow(self.heart.loop.state)
        self.heart.remember_time()

    def _counted_letters(self, counts: Mapping[str, int]) -> None:
        self.letter_counts = counts
