"""What an operator sees: log lines, and the figures behind the metrics.

Knows:   how long commits and checkpoints take, what went wrong and how often.
Touches: standard error, by the standard library's logging.
Never:   logs a message's content, a token or a key; does anything per message.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from nightmail.engine.filelog import FileLog
from nightmail.engine.ports import Checkpoint
from nightmail.engine.watcher import Watcher
from nightmail.gateway.counters import RefusalCounts
from nightmail.model.clock import ClockSeen, ClockState

from .config import LogSettings
from .histogram import COMMIT_MS, LAG_MS, Histogram

log = logging.getLogger("nightmail")

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Figures:
    """What the node counts about itself."""

    def __init__(self) -> None:
        self.commits = Histogram(COMMIT_MS)
        self.lag = Histogram(LAG_MS)
        self.slowest_ms = 0
        """The slowest commit since `take_slowest_ms`."""
        self._under_way: dict[int, int] = {}
        """Number of each commit that is under way → when it began."""
        self._begun = 0
        self.records = 0
        self.failed_commits = 0
        self.checkpoints = 0
        self.checkpoint_rows = 0
        self.checkpoint_entries = 0
        self.checkpoint_at = 0
        """When the newest one was taken, by the server's clock; 0: none yet."""
        self.checkpoint_ms = 0
        """How long the newest one took, from being taken to being durable."""
        self.poisoned = 0
        self.repeated = 0
        self.troubles = 0
        self.leaps = 0

    def take_slowest_ms(self, now_ns: int) -> int:
        """The slowest commit since the last call, counting those that are under way."""
        slowest, self.slowest_ms = self.slowest_ms, 0
        under_way = (now_ns - min(self._under_way.values())) // 1_000_000 if self._under_way else 0
        return max(slowest, under_way)

    def commit(
        self, records: int, done: Callable[[int | None], None], why: Callable[[], str], pace_ns: Callable[[], int]
    ) -> Callable[[int | None], None]:
        """A batch begins to be written. Returns what is called with its place, or with None if it has none."""
        self._begun = number = self._begun + 1
        self._under_way[number] = begun = pace_ns()

        def committed(first: int | None) -> None:
            took_ms = (pace_ns() - begun) / 1e6
            del self._under_way[number]
            self.commits.add(took_ms)
            self.slowest_ms = max(self.slowest_ms, int(took_ms))
            if first is None:
                self.failed_commits += 1
                log.error(
                    "a batch could not be written; it was answered: unavailable",
                    extra={"records": records, "why": why()},
                )
            else:
                self.records += records
            done(first)

        return committed


class WatchedLog(FileLog):
    """The log, with the duration of each batch measured."""

    figures: Figures
    pace_ns: Callable[[], int]

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        committed = self.figures.commit(len(records), done, lambda: self.failure or self.why_tight, self.pace_ns)
        super().append(at, records, committed)


CLOCK_LINES = {
    ClockState.BELIEVED: "the machine's clock is believed",
    ClockState.AHEAD: "the machine's clock is far ahead and is not believed yet; time goes on without it, and nothing "
    "expires by it unless it stays so",
    ClockState.BEHIND: "the machine's clock is far behind the server's time: timers wait until it has caught up; if a "
    "wrong clock was believed before, put the time right with `nightmail clock set-back`",
}


class LogWatcher(Watcher):
    """Writes the loop's events to the log lines and the figures."""

    def __init__(self, figures: Figures, clock: Callable[[], int]) -> None:
        self._figures, self._clock = figures, clock

    def on_poison(self, offset: int, error: Exception) -> None:
        self._figures.poisoned += 1
        # The error's own text may repeat what a record says.
        log.critical(
            "a record could not be applied and was set aside", extra={"offset": offset, "error": type(error).__name__}
        )

    def on_trouble(self, why: str) -> None:
        self._figures.troubles += 1
        log.error("storage keeps failing; nothing is lost, and it is tried again", extra={"why": why})

    def on_clock(self, seen: ClockSeen) -> None:
        self._figures.leaps += seen.state is ClockState.AHEAD
        times = {"clock": _iso(seen.wall_ms / 1000), "time": _iso(seen.time_ms / 1000)}
        log.warning(CLOCK_LINES[seen.state], extra=times)

    def on_saved(self, checkpoint: Checkpoint) -> None:
        figures = self._figures
        figures.checkpoints += 1
        figures.checkpoint_rows += len(checkpoint.rows)
        figures.checkpoint_entries += len(checkpoint.entries)
        figures.checkpoint_at = checkpoint.at
        figures.checkpoint_ms = max(0, self._clock() - checkpoint.at)
        log.debug(
            "a checkpoint is durable",
            extra={"upto": checkpoint.upto, "rows": len(checkpoint.rows), "ms": figures.checkpoint_ms},
        )

    def on_repeated(self) -> None:
        self._figures.repeated += 1


# --- refusals ---------------------------------------------------------------------------------

REFUSALS_LOGGED = 20
"""Fewer of one kind between two looks are everyday life."""


def log_refusals(counters: RefusalCounts) -> None:
    """One line for each kind of which there were many since the last call. Names networks, and nothing else."""
    for kind, (count, busiest, its_count) in sorted(counters.take_refusals().items()):
        if count >= REFUSALS_LOGGED:
            extra = {"kind": kind, "count": count, "busiest": busiest, "its_count": its_count}
            log.warning("much was refused", extra=extra)


# --- lines ------------------------------------------------------------------------------------


def set_up_logging(settings: LogSettings) -> None:
    """All lines of the process go to standard error, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    # Requests are counted, not logged: a path may name people. Bad requests of strangers are not logged either.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class JsonLines(logging.Formatter):
    """One object per line: at, level, where, message, and whatever belongs to it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _when(record),
            "level": record.levelname.lower(),
            "where": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f"  {name}={value}" for name, value in _extras(record).items())
        line = f"{_when(record)} {record.levelname.lower():8} {record.getMessage()}{extras}"
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


def _when(record: logging.LogRecord) -> str:
    return _iso(record.created)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN and name != "color_message"}
