"""Virtual time, one source of chance, and what is remembered of what happened.

Everything that happens in a simulation is a function put on this schedule; two runs from one
seed are the same to the last event.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from random import Random

PYTHON = ".venv/bin/python"
"""How a command begins that shows a failure again: in the project's folder, with what `make` runs."""


class Broken(AssertionError):
    """A promise was not kept."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.world: World | None = None


class World:
    def __init__(self, seed: int, *, start_ms: int = 1_700_000_000_000) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.now = start_ms
        self.events = 0
        self.sometimes: Counter[str] = Counter()
        """How often each interesting thing happened: a campaign in which one never did proves little."""
        self.story: deque[str] = deque(maxlen=4_000)
        self.clock_slack_ms = 0
        """By how much the servers' clocks may disagree with each other, or with themselves."""
        self._start = start_ms
        self._schedule: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

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
        self.story.append(f"{(self.now - self._start) / 1000:9.3f}  {who:<14} {what}")

    def hit(self, what: str) -> None:
        self.sometimes[what] += 1

    def maybe(self, probability: float) -> bool:
        return self.chance.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)
