"""What every scenario needs: a folder, a running node, people on it, and a window in which to measure."""

from __future__ import annotations

import gc
import pstats
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from random import Random

from msgspec import Struct

from nightmail.engine.loop import LoopLimits
from nightmail.model.answers import Joined
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER, account_id
from nightmail.model.records import Record, Registered
from nightmail.model.refusals import Overloaded
from nightmail.model.words import Platform

from .clients import Clients, Talk
from .figures import Figures, compare, say
from .measured_node import Broken, Rig
from .meter import Account, GcPolicy, Sample, set_gc

REGISTRATIONS = 4_096
"""Registrations in flight."""


class Settings(Struct, frozen=True):
    messages: int = 200_000
    """How many a scenario measures, unless its name says otherwise."""
    crowd: int = 100_000
    known: int = 100_000
    history: int = 500_000
    waiting: int = 40_000
    depths: tuple[int, ...] = (10, 1_000, 10_000)
    recovery: int = 300_000
    folder: str | None = None
    gc: GcPolicy = "server"
    profile: Account | None = None


QUICK = Settings(messages=20_000, crowd=5_000, known=5_000, history=50_000, waiting=10_000, recovery=10_000)
FULL = Settings(known=1_000_000, history=10_000_000)
TINY = Settings(messages=300, crowd=60, known=100, history=600, waiting=100, depths=(2, 10), recovery=200)


@contextmanager
def data_folder(settings: Settings) -> Generator[Path]:
    """A fresh one, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="nightmail-bench-", dir=settings.folder) as name:
        yield Path(name) / "data"


class Stage:
    """A node, its clients, and how many of its messages were measured so far."""

    def __init__(self, name: str, rig: Rig, settings: Settings) -> None:
        self.name, self.rig, self.settings = name, rig, settings
        self.clients = Clients(rig)
        self.chance = Random(1)
        self.devices: list[int] = []
        self._said_at = time.monotonic()

    def register(self, count: int) -> None:
        """Give this many people an account and a device each, through the log."""
        waiting: dict[int, Record] = {}
        numbers = iter(range(len(self.devices) + 1, len(self.devices) + count + 1))
        wanted = len(self.devices) + count
        while len(self.devices) < wanted:
            batch: list[Record] = []
            while len(waiting) < REGISTRATIONS and (number := next(numbers, None)):
                handle = f"person-{number}"
                new = Registered(account_id(handle), handle, 1, number.to_bytes(32, "big"), "phone", Platform.ANDROID)
                waiting[number] = Record(SERVER, number, new)
                batch.append(waiting[number])
            for effect in self.rig.turn(batch):
                if not isinstance(effect, Answer):
                    continue
                if isinstance(effect.said, Overloaded):
                    self.rig.loop.submit(waiting[effect.via])
                elif isinstance(effect.said, Joined):
                    self.devices.append(effect.said.device)
                    del waiting[effect.via]
                else:
                    raise Broken(f"{waiting[effect.via]} was told {effect.said}")
            self.progress(len(self.devices), wanted, "devices")

    def pair_up(self, devices: list[int]) -> list[Talk]:
        """Everybody writes to one other: a random ring."""
        ring = devices.copy()
        self.chance.shuffle(ring)
        return [self.clients.talk(by, peer) for by, peer in zip(ring, [*ring[1:], ring[0]], strict=True)]

    def begin(self) -> Sample:
        """Start measuring."""
        self.rig.settle()
        set_gc(self.settings.gc)
        self.rig.meter.take_calibration()
        if self.settings.profile:
            self.rig.meter.profile = (self.settings.profile, Profile())
        return self.rig.sample()

    def end(self, name: str, before: Sample, messages: int) -> Figures:
        """Stop measuring, after everything is saved, so that deferred work is included."""
        self.rig.settle()
        if self.rig.meter.profile:
            _, profiler = self.rig.meter.profile
            self.rig.meter.profile = None
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(25)
        return compare(name, len(self.devices), messages, before, self.rig.sample(), self.rig.meter)

    def progress(self, done: int, of: int, what: str) -> None:
        now = time.monotonic()
        if now - self._said_at >= 1:
            self._said_at = now
            say(f"{self.name}: {done:,} of {of:,} {what}", passing=True)


@contextmanager
def stage(name: str, settings: Settings, limits: LoopLimits | None = None) -> Generator[Stage]:
    """A node on a new folder. It is closed in any case; the folder goes with it."""
    with data_folder(settings) as folder:
        rig = Rig(folder, limits)
        gc.callbacks.append(rig.meter.watch_gc)
        try:
            rig.loop.recover()
            yield Stage(name, rig, settings)
        finally:
            gc.callbacks.remove(rig.meter.watch_gc)
            rig.close()
