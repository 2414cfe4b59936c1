"""The real engine on a real folder, driven as an event loop would drive it.

Knows:   which account of the meter each port and each callback belongs to.
Touches: one data folder; a log writer's and a saver's thread, as in the server.
Never:   changes what the engine does: it wraps the ports and reads the clock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from nightmail.engine.data_folder import DataFolder
from nightmail.engine.filelog import FileLog
from nightmail.engine.filelog.files import OsFiles
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.ports import Checkpoint, Failed, Found, Log, Overtaken, Post, Rows
from nightmail.engine.sqlite import SqliteRows
from nightmail.engine.watcher import Watcher
from nightmail.engine.worker import Worker
from nightmail.model.effects import Effect
from nightmail.model.records import Record
from nightmail.model.rows import Need
from sim.faults.log_wrapper import LogWrapper
from sim.faults.rows_wrapper import RowsWrapper

from .meter import Account, Meter, Sample, read_threads, read_written

TICK_NS = 20_000_000
"""How often the loop's `tick` is called."""


class Broken(Exception):
    """A promise was broken, so the figures are meaningless."""


class MeasuredLoop(Loop):
    """The loop, with separate accounts for its two main entry points."""

    meter: Meter

    def flush(self) -> None:
        before = self.meter.switch("log")
        super().flush()
        self.meter.switch(before)

    def tick(self) -> None:
        before = self.meter.switch("checkpoint")
        super().tick()
        self.meter.switch(before)


class MeasuredLog(LogWrapper):
    """A `Log` whose own work is charged to the log, and whose callbacks are charged to the fold."""

    def __init__(self, log: Log, meter: Meter) -> None:
        super().__init__(log)
        self._meter = meter
        self.records = 0
        self.batches = 0

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        self.records += len(records)
        self.batches += 1

        def appended(first: int | None) -> None:
            before = self._meter.switch("fold")
            done(first)
            self._meter.switch(before)

        self.log.append(at, records, appended)


class MeasuredRows(RowsWrapper[Rows]):
    """Rows, with a separate account for reading."""

    def __init__(self, rows: Rows, meter: Meter) -> None:
        super().__init__(rows)
        self._meter = meter

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        meter = self._meter
        asked = meter.switch("load")

        def loaded(found: Found | Overtaken | Failed) -> None:
            meter.switch(asked)
            done(found)
            meter.switch("load")

        self.rows.load(needs, loaded)
        meter.switch(asked)


class Rig(Watcher):
    """Everything that one node is made of, and the turns of its loop."""

    def __init__(self, folder: Path, limits: LoopLimits | None = None) -> None:
        self.meter = meter = Meter()
        self.effects: list[Effect] = []
        self.checkpoints = self.rows_saved = self.entries_saved = 0
        self._posted: SimpleQueue[tuple[Account, Callable[[], None]]] = SimpleQueue()
        self._ticked_at = 0
        self.threads: dict[str, int] = {}
        self._folder = DataFolder(folder)
        self._writer = self._thread("log writer", "log")
        self._saver = self._thread("saver", "checkpoint")
        self._rows = SqliteRows(folder, post=self._post("checkpoint"), execute=self._saver, entropy=os.urandom)
        self._log = FileLog(
            OsFiles(folder), self._rows.identity, after=self._rows.pointer, post=self._post("log"), execute=self._writer
        )
        self.log = MeasuredLog(self._log, meter)
        rows = MeasuredRows(self._rows, meter)
        self.loop = MeasuredLoop(
            self.log, rows, _clock, self.effects.extend, pace=_pace, limits=limits, watcher=self
        )  # fmt: skip
        self.loop.meter = meter

    def _thread(self, name: str, account: Account) -> Worker:
        before = set(threading.enumerate())
        writer = Worker(self._post(account), name)
        (thread,) = set(threading.enumerate()) - before
        assert thread.ident is not None
        self.threads[name] = thread.ident
        return writer

    def _post(self, account: Account) -> Post:
        put = self._posted.put
        return lambda callback: put((account, callback))

    # --- turns ----------------------------------------------------------------------------------

    def turn(self, records: Sequence[Record], *, wait: bool = True) -> list[Effect]:
        """One turn: take in what clients sent, then whatever other threads have finished. Returns the effects."""
        meter, loop = self.meter, self.loop
        if records:
            before = meter.switch("submit")
            for record in records:
                loop.submit(record)
            meter.switch(before)
            loop.flush()
        now = time.monotonic_ns()
        if now - self._ticked_at >= TICK_NS:
            self._ticked_at = now
            loop.tick()
        self._run_posted(wait=wait and not self.effects)
        meter.calibrate()
        effects = self.effects.copy()
        self.effects.clear()
        return effects

    def _run_posted(self, *, wait: bool) -> None:
        try:
            account, callback = self._posted.get(wait, TICK_NS / 1e9)
            while True:
                before = self.meter.switch(account)
                callback()
                self.meter.switch(before)
                account, callback = self._posted.get_nowait()
        except Empty:
            pass

    def settle(self) -> None:
        """Save everything, and wait until nothing is under way."""
        for _ in range(2):
            self.loop.save(at_once=True)
            while not self.loop.idle:
                self.turn(())
        if self.effects:
            raise Broken(f"{len(self.effects)} effects came of nothing")

    # --- looking --------------------------------------------------------------------------------

    def on_poison(self, offset: int, error: Exception) -> None:
        raise Broken(f"the record at {offset} could not be folded: {error!r}")

    def on_trouble(self, why: str) -> None:
        raise Broken(f"checkpoints fail: {why}")

    def on_saved(self, checkpoint: Checkpoint) -> None:
        self.checkpoints += 1
        self.rows_saved += len(checkpoint.rows)
        self.entries_saved += len(checkpoint.entries)

    @property
    def pointer(self) -> int:
        """What the last checkpoint reached."""
        return self._rows.pointer

    def sample(self) -> Sample:
        self.meter.switch(self.meter.current)
        written, to_disk = read_written()
        return Sample(
            wall=time.monotonic_ns(),
            process=time.process_time_ns(),
            spent=dict(self.meter.spent),
            threads=read_threads(self.threads),
            written=written,
            to_disk=to_disk,
            records=self.log.records,
            batches=self.log.batches,
            checkpoints=self.checkpoints,
            rows_saved=self.rows_saved,
            entries_saved=self.entries_saved,
        )

    def close(self) -> None:
        self._log.close()
        self._rows.close()
        self._writer.close()
        self._saver.close()
        self._folder.close()


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _pace() -> int:
    return time.monotonic_ns() // 1_000_000
