"""How often a frame may break the machine before the client ends. No clock here, and no machine.

Knows:   how far the mailbox was stored the last time.
Never:   counts breaks that have nothing to do with each other: after progress in the mailbox, or on a connection that
         had lasted, it counts from the beginning.
"""

from __future__ import annotations

from nightmail.client.limits import ClientLimits
from nightmail.client.store.rows import Cursors


class RestartBudget:
    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._count = 0
        self._cursors: Cursors | None = None

    def take(self, cursors: Cursors, lasted_ms: int) -> bool:
        """The machine broke, with the mailbox stored so far, on a connection that had lasted so long. False if the
        budget is used up."""
        if cursors != self._cursors or lasted_ms >= self._limits.settled_ms:
            self._count = 0
        self._cursors = cursors
        self._count += 1
        return self._count < self._limits.restarts
