"""One simulated machine with the real gateway, loop and desk, the real file log and the real SQLite rows.

Its disk, its clock and its scheduler are the world's. It can lose power or be killed at any
operation on the disk, also while it recovers, and the disk can fail, fill up or be slow.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import apsw

from nightmail.core.state import ShardState
from nightmail.engine.clock import ClockLimits
from nightmail.engine.desk import LoopDesk
from nightmail.engine.filelog import FileLog
from nightmail.engine.folder_check import check_folder
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.memory import MemoryRegistry
from nightmail.engine.ports import Damaged, EngineError, EntryRange, Failed, Found, Mailboxes, Overtaken
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import SqliteRows, SqliteSettings
from nightmail.engine.watcher import Watcher
from nightmail.model.answers import Said
from nightmail.model.clock import ClockSeen
from nightmail.model.effects import Call, Effect
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import AnyBody, Record
from nightmail.model.rows import Need, queue_id
from nightmail.model.words import Lane
from nightmail.outlets.push.ports import Pusher, PushResult
from sim.faults.disk import Disk, PowerCut
from sim.faults.disk_vfs import DiskVfs
from sim.faults.wrong_clock import SUSPICIOUS, WrongClock
from sim.judges.drained import left_over
from sim.judges.history import History
from sim.judges.lifetimes import Lifetimes
from sim.judges.loss import check_loss
from sim.judges.shadow import Checkpoints, Shadow, ShadowLog, ShadowRows, compare_with_replay
from sim.judges.strict import StrictState

from .front import Connections, Front, Limits
from .poison import Poison
from .world import Broken, World

FOLDER = "data"
TICK_MS = 25
LIMITS_MS = 500
WATCH_EVERY = 8
SLOW_MS = 20
"""A write or a sync that takes longer than most things that happen meanwhile."""
LEAP_MS = DAY_MS
JUMP_MS = 10_000
"""How far the clock may be wrong, either way."""
STARTS_MAX = 3
"""So many starts in a row may fail; the disk spares the next one. Otherwise a world may pass in which nobody lives."""


class DiskFaults:
    """What goes wrong below the loop. Drawn for each seed; all off while healing."""

    def __init__(self, world: World, off: frozenset[str]) -> None:
        chance = world.chance
        self._world = world
        self.on = True
        self.cut_every = chance.choice((0, 150, 600)) if "power" not in off else 0
        self.error_rate = chance.choice((0.0, 0.0, 0.01, 0.05)) if "errors" not in off else 0.0
        self.full_log = chance.random() < 0.2 and "full" not in off
        self.full_rows = chance.random() < 0.2 and "full" not in off
        self.slow = chance.choice((0, 3, 40)) if "slow" not in off else 0
        self.kills = chance.random() < 0.3 and "kills" not in off
        self.stops = chance.random() < 0.3 and "stops" not in off
        self.pressure = chance.random() < 0.5 and "pressure" not in off
        self.clock = chance.random() < 0.5 and "clock" not in off
        # In most worlds without a clock that jumps, if that is what a person wants to see.
        self.wrong_clock = chance.random() < (0.9 if "clock" in off else 0.25) and "wrong clock" not in off
        self.full = ""
        self.spares = False
        """For now, nothing goes wrong."""
        self._left = 0

    def before(self, operation: str, path: str) -> None:
        if not self.on or self.spares:
            return
        world = self._world
        if self.cut_every:
            self._left -= 1
            if self._left <= 0:
                first, self._left = self._left == 0, world.between(1, 2 * self.cut_every)
                if first:
                    raise PowerCut
        if operation in ("write", "create") and self.full and self.full in path:
            world.hit(f"disk full for {self.full}")
            raise OSError(errno.ENOSPC, path)
        if operation in ("write", "sync") and world.maybe(self.error_rate):
            world.hit(f"{operation} failed")
            raise OSError(errno.EIO, path)

    def fill(self) -> None:
        """The disk fills up for the log or for the rows, for a while."""
        places = ["log-"] * self.full_log + ["rows."] * self.full_rows
        self.full = self._world.chance.choice([*places, ""]) if self.on else ""
        self._world.later(self._world.between(200, 3_000), self.fill)


class Node(Watcher):
    """A `Backend` of one machine."""

    addresses = ("ws://node",)

    def __init__(self, world: World, limits: Limits, vfs: DiskVfs, off: frozenset[str] = frozenset()) -> None:
        self.world, self._limits = world, limits
        self.faults = DiskFaults(world, off)
        self.disk = Disk(world.chance, self.faults.before)
        self.disk.hit = world.hit
        vfs.disk, vfs.chance = self.disk, Random(world.seed)
        apsw.randomness(0)
        self._vfs = vfs
        self._shadow, self._checkpoints = Shadow(), Checkpoints(world)
        self._skew = 0
        self._leapt = 0
        self._life = 0
        self._failed_starts = 0
        """In a row."""
        self.loop: Loop | None = None
        self._log: FileLog | None = None
        self._rows: SqliteRows | None = None
        self._desk: LoopDesk | None = None
        self._front: Front | None = None
        self.pusher: Pusher | None = None
        self.connections = Connections()
        self.opened_at = 0
        """When the present process was started."""
        chance = world.chance
        self._loop_limits = LoopLimits(
            batch_records=chance.choice((1, 8, 4_096)),
            linger_ms=chance.choice((0, 1, 20)),
            linger_records=chance.choice((2, 64)),
            unsaved_rows=chance.choice((40, 200_000)),
            unsaved_bytes=chance.choice((10_000, 10**9)),
            saver=SaverLimits(
                checkpoint_rows=chance.choice((10, 5_000)),
                checkpoint_bytes=chance.choice((3_200, 10**9)),
                checkpoint_ms=chance.choice((100, 1_000, 5_000)),
                rows_in_memory=chance.choice((10, 100, 500_000)),
            ),
            clock=SUSPICIOUS if self.faults.wrong_clock else ClockLimits(start_ahead_ms=LEAP_MS // 2),
        )
        world.later(0, self._boot)
        world.later(0, self.faults.fill)
        self.wrong_clock = WrongClock(world, self._loop_limits.clock) if self.faults.wrong_clock else None
        if self.wrong_clock:
            self.wrong_clock.begin(lambda: self.loop, self._say)
        elif self.faults.clock:
            world.clock_slack_ms = 2 * JUMP_MS
            world.later(1_000, self._jump_clock)
            world.later(2_000, self._leap_clock)
        if self.faults.kills:
            world.later(2_000, self._kill_now_and_then)
        if self.faults.stops:
            world.later(3_000, self._stop_now_and_then)

    def _new_state(self) -> ShardState:
        return StrictState(newest_fold=self._limits.version, every=WATCH_EVERY)

    # --- its life -------------------------------------------------------------------------------

    def _boot(self) -> None:
        """Power on, open, recover. The power may go again at any step of it."""
        self.disk.power_on()
        self._failed_starts += 1
        self.faults.spares = self._failed_starts > STARTS_MAX
        try:
            self._open()
            self._failed_starts = 0
        except PowerCut:
            self.world.hit("power cut in recovery")
            self.world.tell("node", "loses power while it recovers")
            self._down()
        except EngineError as error:
            # No fault of this disk damages what it has confirmed: to find it damaged is never right.
            if not self.faults.on or (isinstance(error, Damaged) and self.disk.is_on):
                raise
            self.world.hit("could not open")
            self.world.tell("node", f"cannot open: {error}")
            self._down()
        finally:
            self.faults.spares = False

    def _open(self) -> None:
        self._life += 1
        check_folder(Path(FOLDER), self.disk.files(FOLDER), self._vfs.name)
        rows = self._rows = SqliteRows(
            Path(FOLDER), post=self._soon, execute=self._job, entropy=self.world.chance.randbytes,
            settings=SqliteSettings(cache_kib=64, wal_truncate_ms=2_000, wal_pages=64), vfs=self._vfs.name, alone=True,
        )  # fmt: skip
        log = self._log = FileLog(
            self.disk.files(FOLDER), rows.identity, after=rows.pointer, post=self._soon, execute=self._job,
            entropy=self.world.chance.randbytes, segment_bytes=32 * 1024, segment_age_ms=20_000,
        )  # fmt: skip
        if not log.last:
            self._leapt = 0  # An empty folder knows no time: the clock's must be believed.
        desk = LoopDesk(self.world.chance.randbytes, self._pace)
        loop = self.loop = Loop(
            ShadowLog(log, self._shadow), ShadowRows(rows, self._checkpoints), self._clock, partial(self._effect, desk),
            new_state=self._new_state, pace=self._pace, later=self._later, limits=self._loop_limits, watcher=self,
        )  # fmt: skip
        registry = self._registry = MemoryRegistry(self._limits.gateway.silence_ms)
        front = Front(
            self.world,
            "node",
            desk,
            registry,
            self._limits,
            self._clock,
            self.guard,
            loop.flush,
            self,
            self.connections,
        )
        desk.attend(loop, front.gateway, on_wake=front.waker.wake)
        self.opened_at = self.world.now
        loop.recover()
        self.world.tell("node", f"is up at {rows.pointer}, log at {log.last}")
        self._set_limits(self._life)
        self._desk, self._front = desk, front
        if self.faults.pressure and self.faults.on:
            front.press_now_and_then()
        self._tick(self._life)

    def _effect(self, desk: LoopDesk, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Call):
                self.on_call(effect)
        desk.on_effects([effect for effect in effects if not isinstance(effect, Call)])

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        """What comes of a push is heard by nobody if this process has ended by then."""
        life = self._life
        if self.pusher:
            self.pusher.push(seen, lambda result: self.guard(partial(done, result)) if life == self._life else None)

    def on_call(self, call: Call) -> None:
        """Somebody who calls webhooks takes its place."""

    def _set_limits(self, life: int) -> None:
        """Until it is so: the disk may lose the record, and nobody else would say it again."""
        if life == self._life and self.loop and not self.loop.adopt(self._limits.version, self._limits.fold):
            self.world.later(LIMITS_MS, lambda: self.guard(lambda: self._set_limits(life)))

    def _tick(self, life: int) -> None:
        if life != self._life or self.loop is None or self._desk is None or self._front is None:
            return
        for tick in (self.loop.tick, self._desk.tick, self._front.tick):
            if life == self._life:
                self.guard(tick)
        if life == self._life and self.wrong_clock:
            self.wrong_clock.judge(self.loop, bool(self.faults.error_rate or self.faults.full_log))
        elif life == self._life and self.loop.state.now > self.world.now + JUMP_MS:
            raise Broken("a leap is not believed", f"time is {self.loop.state.now - self.world.now} ms ahead")
        if life == self._life and self.loop.stopped:
            raise self.loop.stopped  # No fault of this machine is one that a process does not get over.
        self.world.later(TICK_MS, lambda: self._tick(life))

    def guard(self, do: Callable[[], None]) -> None:
        """Run something of this node's; if the power goes meanwhile, the node is down."""
        life = self._life
        with suppress(PowerCut):
            do()
        # SQLite may make an ordinary error of it, so it is the disk that is asked.
        if not self.disk.is_on and life == self._life:
            self.world.hit("power cut")
            self.world.tell("node", "loses power")
            self._down()

    def _kill_now_and_then(self) -> None:
        """`kill -9`: what the kernel has been given is not lost."""
        if not self.faults.on:
            return
        if self.loop:
            self.world.hit("killed")
            self.world.tell("node", "is killed")
            self._down()
        self.world.later(self.world.between(1_000, 8_000), self._kill_now_and_then)

    def _stop_now_and_then(self) -> None:
        """An upgrade: everybody is sent elsewhere, then the process ends."""
        if not self.faults.on:
            return
        if self._front:
            self.world.hit("stopped")
            self.world.tell("node", "stops")
            self._front.gateway.stop(self.world.now)
            self._stopped(self._front)
        self.world.later(self.world.between(2_000, 10_000), self._stop_now_and_then)

    def _stopped(self, front: Front) -> None:
        if self._front is not front:
            return
        if front.gateway.stopped and self.loop and self.loop.idle:
            self._down()
        else:
            self.world.later(TICK_MS, lambda: self._stopped(front))

    def _down(self) -> None:
        self._life += 1
        if self.disk.is_on and self._rows:
            self.disk.kill()
        for part in (self._rows, self._log):
            if part:
                with suppress(PowerCut):  # It may go while a process ends, too.
                    part.close()
        self._rows, self._log, self.loop = None, None, None
        if self._front:
            self._front.end(silently=lambda: self.world.maybe(0.1))
        self._desk = self._front = None
        life = self._life
        self.world.later(self.world.between(10, 2_000), lambda: self._boot() if life == self._life else None)

    def _soon(self, do: Callable[[], None]) -> None:
        self._later(0, do)

    def _later(self, delay_ms: int, do: Callable[[], None]) -> None:
        life = self._life
        self.world.later(delay_ms, lambda: self.guard(do) if life == self._life else None)

    def _job(self, job: Callable[[], None]) -> None:
        """What a writer's thread does, a little later; the power often goes just after it was done."""
        life = self._life

        def work() -> None:
            if life != self._life:
                return
            self.guard(job)
            if self.faults.on and self.faults.cut_every and life == self._life and self.world.maybe(0.01):
                self.world.hit("power cut just after a durable action")
                self.world.tell("node", "loses power just after a job")
                self.disk.power_cut()
                self._down()

        delay_ms = self.world.between(0, self.faults.slow)
        if delay_ms >= SLOW_MS:
            self.world.hit("slow disk")
        self.world.later(delay_ms, work)

    def _clock(self) -> int:
        return self.world.now + self._skew + self._leapt + (self.wrong_clock.ahead_ms if self.wrong_clock else 0)

    def _jump_clock(self) -> None:
        if self.faults.on:
            before, self._skew = self._skew, self.world.between(-JUMP_MS, JUMP_MS)
            self.world.hit(f"clock jumped {'forward' if self._skew > before else 'backward'}")
            self.world.later(self.world.between(1_000, 10_000), self._jump_clock)

    def _leap_clock(self) -> None:
        """It is a day ahead, too briefly to be believed; then it is put right."""
        if self.faults.on:
            self._leapt = 0 if self._leapt else LEAP_MS
            if self._leapt:
                self.world.hit("clock leapt a day")
            self.world.later(self.world.between(1_000, 10_000), self._leap_clock)

    def _pace(self) -> int:
        return self.world.now

    # --- what people ask ----------------------------------------------------------------------------

    def front(self, address: str) -> Front | None:
        return self._front

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None:
        if self._front:
            self._front.ask(by, body, answer)

    def look(self, ask: Callable[[Mailboxes], None]) -> None:
        """A device asks for what waits for it, without a connection."""
        if (desk := self._desk) is not None:
            self.guard(lambda: ask(desk))

    def read(
        self, account: int, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]
    ) -> None:
        """Ask the shard of an account or group, after healing."""
        del account  # There is only one shard.
        if (loop := self.loop) is not None:
            self.guard(lambda: loop.read(wanted, then))

    def command(self, account: int, body: AnyBody) -> None:
        """What an operator says to the shard of an account. It may get lost."""
        del account
        self._say(body)

    def judge_lifetimes(self, history: History) -> None:
        """In a world in which nothing but a wrong clock keeps what is due from ending."""
        faults = self.faults
        is_calm = not (faults.error_rate or faults.full_log or faults.full_rows or faults.cut_every)
        if self.wrong_clock and is_calm and not (faults.kills or faults.stops):
            ttl_ms, late_ms = self._limits.fold.ttl_ms, self.wrong_clock.late_ms
            Lifetimes(self.world, history, ttl_ms, lambda: self.loop.state if self.loop else None, late_ms)

    def _say(self, body: AnyBody) -> None:
        if self.loop:
            self.loop.submit(Record(SERVER, 0, body))
            self.guard(self.loop.flush)

    def on_clock(self, seen: ClockSeen) -> None:
        if self.wrong_clock:
            self.wrong_clock.on_clock(seen)

    def on_poison(self, offset: int, error: Exception) -> None:
        if not isinstance(error, Poison):
            raise error

    def heal(self) -> None:
        """Nothing fails any more, and nothing is slow."""
        self.faults.on, self.faults.full, self.faults.slow, self._skew, self._leapt = False, "", 0, 0, 0
        if self.wrong_clock:
            self.wrong_clock.heal()
        if self._front:
            self._front.heal()

    def holds(self, device: int) -> bool:
        """Whether a device is connected, and answers."""
        return self._front is not None and self._front.holds(device)

    race_ms = -1
    """Nothing is between gateway and registry: a connected device is never pushed to."""

    def is_seated(self, device: int) -> bool:
        """Whether a device counts as online."""
        return self._front is not None and self._registry.seat_of(device, self.world.now) is not None

    def close(self) -> None:
        self._life += 1
        self.disk.kill()
        for part in (self._rows, self._log):
            if part:
                part.close()

    def left_over(self) -> str:
        return left_over(self.loop.state) if self.loop and self.loop.ready else "the node is not up"

    def check_emptied(self, devices: Iterable[int]) -> None:
        """What was acknowledged or has expired is not only out of sight: the store has removed it."""
        assert self._rows is not None
        queues = [queue_id(device, lane) for device in devices for lane in Lane]
        answers: list[Found | Overtaken | Failed] = []
        self._rows.load([EntryRange(queue, 0, 1 << 62) for queue in queues], answers.append)
        for queue, entries in zip(queues, cast("Found", answers[0]), strict=True):
            if entries:
                raise Broken("nothing is left behind", f"{len(entries)} entries of {queue >> 1:x} are still stored")

    def check_loss(self, devices: Iterable[int]) -> None:
        assert self.loop is not None
        check_loss(self.world, [self.loop], devices, self._shadow.batches())

    @property
    def marks(self) -> tuple[int, int] | None:
        """How far its rows are saved, and its log's end; nothing while it is down."""
        return (self._rows.pointer, self._log.last) if self._rows and self._log else None

    def check_replay(self) -> None:
        """What was folded live is what a replay from an older checkpoint gives."""
        if self.loop and self.loop.caught_up:
            self.world.hit("replay compared")
            live = self.loop.state
            older = self._checkpoints.some(live.offset)
            compare_with_replay(live, older, self._shadow.batches(), self._new_state, self._in_store)

    def _in_store(self, queue: int) -> Sequence[tuple[int, bytes]] | None:
        """What a look that disturbs nothing finds."""
        assert self._rows is not None
        answers: list[Found | Overtaken | Failed] = []
        before, self.faults.on = self.faults.on, False
        self._rows.load([EntryRange(queue, 0, 1 << 62)], answers.append)
        self.faults.on = before
        return None if isinstance(answers[0], Failed) else cast("Any", answers[0])[0]
