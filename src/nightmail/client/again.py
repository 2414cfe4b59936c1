"""One more attempt: ever later while attempts fail, and none while nobody is there to hear it."""

from __future__ import annotations

from collections.abc import Callable

from .hub import Hub
from .retries import delay_ms


class Again:
    def __init__(self, hub: Hub, attempt: Callable[[], None]) -> None:
        self._hub, self._attempt = hub, attempt
        self._failures = 0
        self.due: int | None = None
        """When the next attempt is made; None: none waits."""

    def succeeded(self) -> None:
        """The waits begin anew."""
        self._failures = 0

    def later(self) -> None:
        hub = self._hub
        self._failures += 1
        self.due = hub.now + delay_ms(self._failures, hub.limits, hub.chance)

    def connected(self) -> None:
        self._failures = 0
        self._attempt()

    def lost(self) -> None:
        self.due = None

    def tick(self) -> None:
        if self.due is not None and self._hub.now >= self.due:
            self.due = None
            self._attempt()
