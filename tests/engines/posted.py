"""A loop's thread for drivers with threads of their own: what they post is run when a test lets it."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue

PATIENCE_S = 60.0
"""Then it is stuck. Far more than anything takes."""


class Posted:
    def __init__(self) -> None:
        self._callbacks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def post(self, callback: Callable[[], None]) -> None:
        self._callbacks.put(callback)

    def run_until(self, so: Callable[[], bool]) -> None:
        """Run what is posted, until it is so."""
        while not so():
            try:
                self._callbacks.get(timeout=PATIENCE_S)()
            except Empty:
                raise AssertionError("nothing is posted any more, and it is not so") from None
