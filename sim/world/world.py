"""Virtual time, one source of chance, and what is remembered of what happened.

Everything that happens in a simulation is a function put on this schedule; two runs from one
seed are the same to the last event.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

PYTHON = ".venv/bin/python"
"""How a command begins that shows a failure again: in the project's folder, with what `make` runs."""


FAULTS_KEPT = 200
SAME_FAULT_MS = 3_000
"""A fault that comes again within this time is counted, not listed again."""
HITS = {
    "clock jumped forward": ("clock", "jumps forward"),
    "clock jumped backward": ("clock", "jumps backward"),
    "clock leapt a day": ("clock", "leaps a day ahead"),
    "clock went wrong": ("clock", "goes wrong"),
    "wrong clock believed": ("clock", "is wrong for so long that it is believed"),
    "time set back": ("operator", "sets the time back"),
    "disk full for log-": ("disk", "is full for the log"),
    "disk full for rows.": ("disk", "is full for the rows"),
    "write failed": ("disk", "fails a write"),
    "failed sync kept the data": ("disk", "fails a sync, and has the data"),
    "failed sync lost data": ("disk", "fails a sync, and lost data"),
    "append lost": ("log", "loses an append"),
    "log down": ("log", "of a shard takes no append"),
    "append unknown": ("log", "does not say what became of an append"),
    "append durable without its place": ("log", "has an append, and does not say where"),
    "append lost its first and kept the rest": ("log", "keeps only the end of an append"),
    "write timed out yet applied": ("store", "times out, yet applies the write"),
    "pointer seen before it was answered": ("store", "shows a pointer whose write timed out"),
    "write repeated": ("store", "applies a write once more"),
    "fell behind the log": ("an owner", "fell behind the log and starts again"),
    "fold raised": ("every shard", "is told to fold as a later version"),
    "fold raised by all": ("a shard", "goes on to the fold that every node supports"),
    "answer lost": ("a link", "loses an answer"),
    "news lost": ("a link", "loses news of a mailbox"),
    "old fold stopped": ("an owner", "knows only the old fold and stops"),
    "zombie saved": ("a zombie", "saves a checkpoint"),
    "zombie forwarded": ("a zombie", "forwards"),
}
"""Faults that the story does not tell, but the world counts."""
TOLD = ("crashes", "goes offline", "is lost", "blocks", "unblocks")
"""What a person or a device does that is worth a line among the faults."""


@dataclass
class Fault:
    at_ms: int
    who: str
    what: str
    times: int = 1


@dataclass
class BelievedLeap:
    """A server has believed a clock that was wrong for long."""

    doubted_at: int
    """When it began to doubt it. What was sent since then does not age by the leap."""
    at: int
    ms: int
    until: int = 1 << 62
    """When the time was set back."""

    def is_time(self, ms: int) -> bool:
        """Whether the wrong clock may have given this time."""
        return self.at + self.ms <= ms <= self.until + self.ms


class Broken(AssertionError):
    """A promise was not kept."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.world: World | None = None
        self.story: list[str] = []
        """For the person who has to understand it: see `sim.judges.story`."""


class World:
    def __init__(self, seed: int, *, start_ms: int = 1_700_000_000_000) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.now = start_ms
        self.events = 0
        self.sometimes: Counter[str] = Counter()
        """How often each interesting thing happened: a campaign in which one never did proves little."""
        self.story: deque[str] = deque(maxlen=4_000)
        self.faults: deque[Fault] = deque(maxlen=FAULTS_KEPT)
        self.clock_slack_ms = 0
        """By how much the servers' clocks may disagree with each other, or with themselves."""
        self.believed_leaps: list[BelievedLeap] = []
        self.start = start_ms
        self._schedule: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def slack_ms(self, since: int, ended_at: int) -> int:
        """How much too early something may end that was sent at `since`; the server's time was `ended_at` when it did.

        What a wrong clock ends while it is believed, ends too early; what ends after it was set back does not.
        """
        early = (leap.ms for leap in self.believed_leaps if leap.doubted_at >= since and leap.is_time(ended_at))
        return self.clock_slack_ms + sum(early)

    def later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._schedule, (self.now + max(0, delay_ms), self._count, happen))

    def run_until(self, when: int) -> None:
        """Let everything happen that is scheduled before `when`."""
        schedule = self._schedule
        while schedule and schedule[0][0] <= when:
            self.now, _, happen = heapq.heappop(schedule)
            self.events += 1
            happen()
        self.now = when

    def tell(self, who: str, what: str) -> None:
        """A line of the story, for the person who has to understand a failure."""
        self.story.append(self.line(self.now, who, what))
        if who == "node" or who.startswith("shard ") or what.startswith(TOLD):
            self._list(who, what)

    def line(self, when: int, who: str, what: str) -> str:
        return f"{(when - self.start) / 1000:9.3f}  {who:<14} {what}"

    @property
    def elapsed_ms(self) -> int:
        return self.now - self.start

    def hit(self, what: str) -> None:
        self.sometimes[what] += 1
        if what in HITS:
            self._list(*HITS[what])

    def _list(self, who: str, what: str) -> None:
        now = self.elapsed_ms
        for fault in reversed(self.faults):
            if fault.at_ms <= now - SAME_FAULT_MS:
                break
            if (fault.who, fault.what) == (who, what):
                fault.times += 1
                return
        self.faults.append(Fault(now, who, what))

    def maybe(self, probability: float) -> bool:
        return self.chance.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)
