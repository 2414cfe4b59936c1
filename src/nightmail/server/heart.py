"""The parts below the doors, put together on one data folder: lock, rows, log, loop.

Knows:   the order in which they are opened, and closed again.
Touches: the data folder; four threads: one writes the log, one saves checkpoints, one reads traces, one stores
         presence.
Never:   drives the loop; the node does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.engine.data_folder import DataFolder
from nightmail.engine.filelog.files import OsFiles
from nightmail.engine.folder_check import check_folder
from nightmail.engine.loop import Loop
from nightmail.engine.ports import Post
from nightmail.engine.presence import EmbeddedPresence
from nightmail.engine.schedule_survey import ScheduleSurvey
from nightmail.engine.sqlite import SqliteRows
from nightmail.engine.sqlite.presence_file import PRESENCE_NAME, PresenceFile
from nightmail.engine.trace import Tracer
from nightmail.engine.worker import Worker
from nightmail.model.effects import Effect
from nightmail.model.ids import SERVER

from .config import Config
from .observe import Figures, LogWatcher, WatchedLog


def clock() -> int:
    """Milliseconds since 1970, for stamping; may be set at any time."""
    return time.time_ns() // 1_000_000


def pace() -> int:
    """Milliseconds that never jump, for waiting."""
    return time.monotonic_ns() // 1_000_000


class Heart:
    """Everything below a socket. Raises EngineError if the folder cannot be served."""

    def __init__(
        self,
        config: Config,
        figures: Figures,
        post: Post,
        later: Callable[[int, Callable[[], None]], None],
        on_effects: Callable[[Sequence[Effect]], None],
        newest_fold: int = NEWEST_FOLD,
    ) -> None:
        """`newest_fold`: another one than the program's, for trying what comes next."""
        self._limits, self._newest_fold = config.fold, newest_fold
        self.folder = folder = Path(config.data.folder)
        with ExitStack() as parts:
            self._held = held = DataFolder(folder)
            parts.callback(held.close)
            files = OsFiles(folder)
            # Everything is looked at before anything is opened for writing: a start that is refused changes nothing.
            self.checked_at, began_ms = clock(), pace()
            check_folder(folder, files)
            self.checked_ms = pace() - began_ms
            held.sign()
            writer = Worker(post, "log writer")
            parts.callback(writer.close)
            saver = Worker(post, "saver")
            parts.callback(saver.close)
            aside = Worker(post, "aside")
            parts.callback(aside.close)
            self.rows = SqliteRows(folder, post=post, execute=saver, entropy=os.urandom, settings=config.sqlite)
            parts.callback(self.rows.close)
            self.log = WatchedLog(
                files, self.rows.identity, after=self.rows.pointer, post=post, execute=writer,
                segment_bytes=config.data.segment_bytes, segment_age_ms=config.data.segment_age_ms,
            )  # fmt: skip
            self.log.figures, self.log.pace_ns = figures, time.monotonic_ns
            parts.callback(self.log.close)
            self.loop = Loop(
                self.log, self.rows, clock, on_effects, pace=pace, later=later, limits=config.loop,
                watcher=LogWatcher(figures, clock), folder_ms=held.time_ms,
                new_state=lambda: ShardState(newest_fold=newest_fold),
            )  # fmt: skip
            self.tracer = Tracer(self.rows, aside, post)
            self.survey = ScheduleSurvey(self.rows, aside, post)
            self.presence = _presence(config, folder, post, parts) if config.presence.enabled else None
            self._parts = parts.pop_all()

    def recover(self) -> None:
        """Recover the state from rows and log. Raises EngineError: a damaged row, a program that is too old."""
        self.loop.recover()
        self.check()
        # After a crash the delivery log has no line that says that connections ended.
        self.loop.note_connection(SERVER, here=False)
        self.adopt_settings()

    def check(self) -> None:
        """Raises EngineError if the loop cannot go on."""
        if self.loop.stopped:
            raise self.loop.stopped

    def adopt_settings(self) -> None:
        """Raise the shard to the newest fold and to the operator's limits, unless it has them."""
        loop = self.loop
        if loop.idle:
            loop.adopt(self._newest_fold, self._limits)

    def remember_time(self) -> None:
        """For the next start, which doubts a clock that is far ahead."""
        if time_ms := self.loop.clock_seen.time_ms:
            self._held.remember_time(time_ms)

    @property
    def is_raised(self) -> bool:
        """The shard folds with the newest version."""
        return self.loop.state.shard.fold >= self._newest_fold

    def close(self) -> None:
        """Waits for what is under way on the threads. The loop must not be driven any more."""
        self.remember_time()
        self._parts.close()


def _presence(config: Config, folder: Path, post: Post, parts: ExitStack) -> EmbeddedPresence:
    """With a thread of its own: a trace may keep the others waiting for seconds."""
    store = PresenceFile(str(folder / PRESENCE_NAME))
    parts.callback(store.close)
    worker = Worker(post, "presence")
    parts.callback(worker.close)
    presence = EmbeddedPresence(store, config.presence, post=post, execute=worker, clock=clock)
    parts.callback(presence.close)
    return presence
