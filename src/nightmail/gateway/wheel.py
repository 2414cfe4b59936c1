"""One wheel for every timer of every connection: adding is an append, and nothing is ever cancelled.

A timer that is called checks whether it is still needed, and adds itself again if it came too early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

SLOT_MS = 25

Timer: TypeAlias = Callable[[int], None]


class Wheel:
    def __init__(self, now: int) -> None:
        self._slots: dict[int, list[Timer]] = {}
        self._turned = now // SLOT_MS

    def add(self, at: int, timer: Timer) -> None:
        """Call `timer(now)` at `at` or a little later; never before the next turn."""
        slot = max(-(-at // SLOT_MS), self._turned + 1)
        self._slots.setdefault(slot, []).append(timer)

    def turn(self, now: int) -> None:
        upto = now // SLOT_MS
        while self._turned < upto:
            self._turned += 1
            for timer in self._slots.pop(self._turned, ()):
                timer(now)
            if not self._slots:
                self._turned = upto

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))
