"""How often a frame may trip the client up before that is its end. No clock here, and no machine.

Knows:   how far the mailbox was safe the last time.
Never:   counts what has nothing to do with each other: after a step forward, or a connection that was a good one,
         it begins anew.
"""

from __future__ import annotations

from .limits import ClientLimits
from .store import Cursors


class Stumbles:
    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._count = 0
        self._reached: Cursors | None = None

    def may_go_on(self, reached: Cursors, lasted_ms: int) -> bool:
        """It has happened, with the mailbox safe so far, on a connection that had lasted so long; False: too often."""
        if reached != self._reached or lasted_ms >= self._limits.settled_ms:
            self._count = 0
        self._reached = reached
        self._count += 1
        return self._count < self._limits.stumbles
