"""Questions that may get lost: each is asked again until it is answered, and answered once.

Knows:   which questions wait, and since when.
Never:   reads a clock, or calls back twice for one question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")


class Questions:
    def __init__(self, pace: Callable[[], int], again_ms: int) -> None:
        self._pace, self._again_ms = pace, again_ms
        self._waiting: dict[int, tuple[Callable[[], None], int]] = {}
        """Number → how to ask, and when it was last asked."""
        self._asked = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, put: Callable[[Callable[P, None]], None], then: Callable[P, None]) -> None:
        """Call `put` with a callback, now and every `again_ms`, until that callback is called. Then call `then`."""
        self._asked = number = self._asked + 1

        def answered(*found: P.args, **named: P.kwargs) -> None:
            if self._waiting.pop(number, None):
                then(*found, **named)

        def again() -> None:
            put(answered)

        self._waiting[number] = again, self._pace()
        again()

    def tick(self) -> None:
        """Ask again what was not answered in time."""
        now = self._pace()
        for number, (again, asked) in list(self._waiting.items()):
            # An answer may have answered another question, too.
            if now - asked >= self._again_ms and number in self._waiting:
                self._waiting[number] = again, now
                again()
