"""The one clock of a running client: milliseconds since 1970 that never go back."""

from __future__ import annotations

import time


class ClientClock:
    def __init__(self) -> None:
        self._now = time.time_ns() // 1_000_000
        self._measured = time.monotonic_ns()

    def __call__(self) -> int:
        """The system's time. While that is set back, the time goes on by what has passed since."""
        passed = (time.monotonic_ns() - self._measured) // 1_000_000
        self._measured += passed * 1_000_000
        self._now = max(self._now + passed, time.time_ns() // 1_000_000)
        return self._now
