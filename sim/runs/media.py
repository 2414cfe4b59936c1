"""Blobs, while the process dies at any step: rows and bytes stay in step, and nobody loses what was sent.

Knows:   a second, plain model of every blob: who has it, when it ends, what it takes.
Touches: one loop in memory, the real keeper, and a store whose operations take time, fail, and are lost in a crash.

    python -m sim.runs.media --seeds 200
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from random import Random

from msgspec import Struct

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.blobs.keeper import BlobKeeper
from nightmail.engine.blobs.port import BlobFailed, Held
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Done, Said
from nightmail.model.blob_rows import BlobSeen, Purpose
from nightmail.model.blobs import BlobId
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import (
    AnyBody,
    BlobAddressed,
    BlobBegun,
    BlobCompleted,
    BlobRemoved,
    BlobVerified,
    Record,
    Registered,
)
from nightmail.model.words import Lane, Platform

from . import seeded_suite

HOUR = 3_600_000
LIMITS = FoldLimits(media_ms=3 * DAY_MS, upload_ms=DAY_MS)
ADA = account_id("ada")
FRIENDS = [device_id(account_id("bob"), index) for index in range(1, 5)]
TURNS = 900
UNDER_WAY = 4
ENDED = 20
"""So many that have ended last are looked at again."""
LATE_MS = 2 * DAY_MS + 12 * HOUR
"""Bytes are left behind for no longer: a sweep comes after a day, fails once, and takes its time here."""
LOST_MS = 5 * DAY_MS
"""Nor a row whose bytes somebody took: each day's look can be lost in a crash, and only the next day's makes up for it.
"""
AWAY = BlobFailed("the store is away")


class Broken(Exception):
    """A promise about blobs did not hold."""


class Store:
    """Bytes that outlive the process: `Blobs`, as far as the keeper and an upload use it."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.held_by: dict[BlobId, Held] = {}
        self._waiting: list[Callable[[], None]] = []

    def crash(self) -> None:
        self._waiting.clear()

    def work(self) -> None:
        """Do some of what waits, in any order."""
        while self._waiting and self._chance.random() < 0.7:
            self._waiting.pop(self._chance.randrange(len(self._waiting)))()

    def _later(self, job: Callable[[], None]) -> None:
        self._waiting.append(job)

    def held(self, blob: BlobId, done: Callable[[Held | BlobFailed | None], None]) -> None:
        is_away = self._chance.random() < 0.05
        self._later(lambda: done(AWAY if is_away else self.held_by.get(blob)))

    def finish(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        def finish() -> None:
            self.held_by[blob] = Held(size, is_whole=True)
            done(None)

        self._later(finish)

    def remove(self, blob: BlobId, done: Callable[[BlobFailed | None], None]) -> None:
        def remove() -> None:
            if self._chance.random() < 0.02:
                done(AWAY)
                return
            self.held_by.pop(blob, None)
            done(None)

        self._later(remove)

    def names(
        self, after: BlobId | None, limit: int, done: Callable[[Sequence[BlobId] | BlobFailed], None]
    ) -> None:  # fmt: skip
        found = sorted((name for name in self.held_by if after is None or str(name) > str(after)), key=str)
        self._later(lambda: done(found[:limit]))

    def write(self, blob: BlobId, offset: int, data: bytes, done: Callable[[BlobFailed | None], None]) -> None:
        def write() -> None:
            self.held_by.setdefault(blob, Held(0, is_whole=False))
            done(None)

        del offset, data
        self._later(write)

    def confirm(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        raise NotImplementedError

    def read(self, blob: BlobId, offset: int, limit: int, done: Callable[[bytes | BlobFailed | None], None]) -> None:
        raise NotImplementedError


class Known(Struct):
    """What the plain model knows of a blob that lives."""

    purpose: Purpose
    size: int
    ends_at: int
    is_whole: bool = False
    has_it: dict[int, bool] = {}


class Quiet:
    """Nobody is connected."""

    def grew(self, device: int, lane: Lane) -> None: ...

    def changed(self, device: int) -> None: ...

    def dismissed(self, device: int) -> None: ...

    def low(self, device: int) -> None: ...

    def settled(self) -> None: ...


class Town:
    def __init__(self, seed: int) -> None:
        self._chance, self._now = Random(seed), 1_700_000_000_000
        self._log, self._rows, self._store = MemoryLog(), MemoryRows(), Store(self._chance)
        self._model: dict[BlobId, Known] = {}
        self._ended: list[BlobId] = []
        self._alone: dict[BlobId, int] = {}
        """Bytes without a row, or a whole row without bytes → since when."""
        self._taken: set[BlobId] = set()
        """Somebody else took their bytes."""
        self._start()
        while not self._loop.adopt(NEWEST_FOLD, LIMITS):
            pass
        self._do(Registered(ADA, "ada", 7, bytes(32), "phone", Platform.CLI))

    def _start(self) -> None:
        self._desk = desk = LoopDesk(self._chance.randbytes, lambda: self._now)
        self._loop = loop = Loop(self._log, self._rows, lambda: self._now, desk.on_effects)
        self._keeper = BlobKeeper(desk, self._store, lambda: self._now, lambda: None, DAY_MS)
        desk.attend(loop, Quiet(), on_bytes=self._keeper.on_bytes)
        loop.recover()
        self._said: list[Said] = []
        self._line = desk.open_line(lambda _, said: self._said.append(said))

    def _do(self, body: AnyBody) -> Said:
        self._said.clear()
        self._desk.submit([Record(SERVER, self._line << REF_BITS | 1, body)])
        self._loop.flush()
        return self._said[0]

    def run(self) -> None:
        under_way: list[Generator[None]] = []
        for _ in range(TURNS):
            self._now += self._chance.choice((1_000, 60_000, 20 * 60_000, HOUR))
            self._pass()
            if self._chance.random() < 0.05:
                # A crash: what was under way in the process never happens.
                self._store.crash()
                under_way.clear()
                self._start()
            while len(under_way) < UNDER_WAY:
                under_way.append(self._upload())
            one = self._chance.choice(under_way)
            if next(one, self) is self:
                under_way.remove(one)
            self._visit()
            self._pass()
            self._check()

    def _pass(self) -> None:
        """Let everything become due that does, and the keeper work."""
        for _ in range(20):
            self._loop.tick()
            self._loop.flush()
        self._desk.tick()
        self._keeper.tick()
        self._store.work()
        self._loop.flush()
        for name, known in list(self._model.items()):
            if 0 < known.ends_at <= self._now:
                self._end(name)

    def _end(self, name: BlobId) -> None:
        self._model.pop(name, None)
        self._ended.append(name)

    # --- what people do -------------------------------------------------------------------------

    def _upload(self) -> Generator[None]:
        """Row, bytes, durable, record, audience: each is a turn of its own."""
        name, size = BlobId(ADA, self._chance.randbytes(16)), self._chance.randrange(1, 1_000)
        purpose = self._chance.choice((Purpose.MEDIA, Purpose.MEDIA, Purpose.BACKUP))
        if self._do(BlobBegun(*name, purpose, size)) != Done():
            return
        self._model[name] = Known(purpose, size, self._now + LIMITS.upload_ms)
        yield
        done: list[BlobFailed | None] = []
        for step in (partial(self._store.write, name, 0, b""), partial(self._store.finish, name, size)):
            done.clear()
            step(done.append)
            while not done:
                yield
        if self._do(BlobCompleted(*name)) != Done():
            return
        if (known := self._model.get(name)) is None:
            raise Broken(f"{name} became whole after it had ended")
        known.is_whole = True
        known.ends_at = 0 if purpose is Purpose.BACKUP else self._now + LIMITS.media_ms
        yield
        while purpose is Purpose.MEDIA and self._chance.random() < 0.7:
            devices = self._chance.sample(FRIENDS, self._chance.randrange(1, 4))
            life_ms = self._chance.choice((0, 0, 10 * HOUR, 5 * DAY_MS))
            if self._do(BlobAddressed(*name, tuple(devices), life_ms)) != Done():
                return
            for device in devices:
                known.has_it.setdefault(device, False)
            known.ends_at = min(known.ends_at, self._now + life_ms) if life_ms else known.ends_at
            yield

    def _visit(self) -> None:
        """Somebody has it, its owner ends it, or somebody else takes the bytes away."""
        whole = [name for name, known in self._model.items() if known.is_whole]
        if not whole:
            return
        name, chance = self._chance.choice(whole), self._chance.random()
        known = self._model[name]
        if chance < 0.5 and known.has_it:
            device = self._chance.choice(list(known.has_it))
            if self._do(BlobVerified(*name, device)) != Done():
                raise Broken(f"{device:x} may not say that it has {name}")
            known.has_it[device] = True
            if all(known.has_it.values()):
                self._end(name)
        elif 0.5 < chance < 0.52:
            self._do(BlobRemoved(*name))
            self._end(name)
        elif 0.55 < chance < 0.57 and name in self._store.held_by:
            del self._store.held_by[name]
            self._taken.add(name)

    # --- what must hold -------------------------------------------------------------------------

    def _check(self) -> None:
        rows = self._seen({*self._model, *self._store.held_by, *self._ended[-ENDED:]})
        for name in self._taken:
            if name not in rows:
                self._model.pop(name, None)  # The keeper has noticed.
        if missing := self._model.keys() - rows.keys():
            raise Broken(f"{missing.pop()} has ended too early")
        if left := rows.keys() - self._model.keys():
            raise Broken(f"{left.pop()} should have ended")
        for name, known in self._model.items():
            if known.is_whole and name not in self._store.held_by and name not in self._taken:
                raise Broken(f"the bytes of {name} are gone, and it lives")
        self._look_for_orphans({name for name, row in rows.items() if row.is_whole}, set(rows))
        if (own := self._loop.state.account_blobs.rows.get(ADA)) is None:
            return
        sizes = [sum(each.size for each in self._model.values() if each.purpose is purpose) for purpose in Purpose]
        if [own.media_bytes, own.backup_bytes] != sizes or own.files != len(self._model):
            raise Broken(f"{own} is taken, and should be {sizes}")

    def _seen(self, names: set[BlobId]) -> dict[BlobId, BlobSeen]:
        """Those that have a row, in memory or not."""
        found: dict[BlobId, BlobSeen] = {}

        def show(name: BlobId, seen: BlobSeen | None) -> None:
            if seen is not None:
                found[name] = seen

        for name in names:
            self._desk.blob(name, SERVER, partial(show, name))
        return found

    def _look_for_orphans(self, whole: set[BlobId], rows: set[BlobId]) -> None:
        held = set(self._store.held_by)
        alone = (whole - held) | (held - rows)
        self._alone = {name: self._alone.get(name, self._now) for name in alone}
        for name, since in self._alone.items():
            if self._now - since > (LOST_MS if name in whole else LATE_MS):
                raise Broken(f"{name} is left behind for {(self._now - since) // HOUR} hours")


def run(seed: int) -> None:
    Town(seed).run()


if __name__ == "__main__":
    seeded_suite.main("media", __doc__, run)
