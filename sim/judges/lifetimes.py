"""Nothing waits longer than it may live, also after a wrong clock was believed and set back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nightmail.core.state import ShardState
from nightmail.model.rows import Entry
from nightmail.model.words import Lane
from sim.judges.history import History
from sim.world.world import Broken, World

EVERY_MS = 250
LATE_MS = 3_000
"""What a server may take to look at all that is due."""


class Lifetimes:
    """Looks at what a server holds in memory, for as long as it is shown a state."""

    def __init__(
        self, world: World, history: History, ttl_ms: int, state: Callable[[], ShardState | None],
        late_ms: Callable[[int, bool], int],
    ) -> None:  # fmt: skip
        """`late_ms` says how much too late something may end: filed since then, with a timer or without."""
        self._world, self._history, self._ttl_ms = world, history, ttl_ms
        self._state, self._late_ms = state, late_ms
        self._oldest: dict[int, tuple[int, int]] = {}
        """Queue → the oldest number in it, and since when it is that."""
        world.later(EVERY_MS, self._look)

    def _look(self) -> None:
        if state := self._state():
            self._judge(state)
        self._world.later(EVERY_MS, self._look)

    def _judge(self, state: ShardState) -> None:
        now = self._world.now
        for queue, entries in state.entries.items():
            oldest, since = self._oldest_of(queue, entries, now)
            for seq, entry in entries.items():
                if seq != oldest and not entry.life_ms:
                    continue  # A look at a mailbox ends only its oldest ones, and the next one comes a second later.
                message = self._history.by_number.get((entry.by, entry.to, Lane(queue & 1), entry.n))
                life_ms = entry.life_ms or self._ttl_ms
                if message is None or not message.accepted_at or not life_ms:
                    continue
                self._world.hit("judged how long something waits")
                end = message.accepted_at + life_ms + self._late_ms(message.accepted_at, bool(entry.life_ms))
                late = now - (end if entry.life_ms else max(end, since))
                if late > LATE_MS:
                    raise Broken("nothing waits for ever", f"{message.id} should have ended {late} ms ago")

    def _oldest_of(self, queue: int, entries: Mapping[int, Entry], now: int) -> tuple[int, int]:
        oldest = min(entries, default=0)
        if self._oldest.get(queue, (0, 0))[0] != oldest:
            self._oldest[queue] = oldest, now
        return self._oldest.get(queue, (0, now))
