"""Nothing waits longer than it may live, also after a wrong clock was believed and set back."""

from __future__ import annotations

from collections.abc import Callable

from nightmail.core.state import ShardState
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
        world.later(EVERY_MS, self._look)

    def _look(self) -> None:
        if state := self._state():
            self._judge(state)
        self._world.later(EVERY_MS, self._look)

    def _judge(self, state: ShardState) -> None:
        now = self._world.now
        for queue, entries in state.entries.items():
            for entry in entries.values():
                message = self._history.by_number.get((entry.by, entry.to, Lane(queue & 1), entry.n))
                life_ms = entry.life_ms or self._ttl_ms
                if message is None or not message.accepted_at or not life_ms:
                    continue
                self._world.hit("judged how long something waits")
                late = now - message.accepted_at - life_ms - self._late_ms(message.accepted_at, bool(entry.life_ms))
                if late > LATE_MS:
                    raise Broken("nothing waits for ever", f"{message.id} should have ended {late} ms ago")
