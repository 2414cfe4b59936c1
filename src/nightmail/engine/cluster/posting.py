"""Back to the loop's thread, many things at once.

Knows:   what waits to be run there.
Never:   asks the event loop more than once for what came in the meantime: waking it costs more than most callbacks.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from nightmail.engine.ports import Post


class CoalescedPost:
    """A `Post` over another one, for drivers that answer thousands of times a second from threads of their own."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lock = Lock()
        self._waiting: list[Callable[[], None]] = []

    def __call__(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(callback)
            if len(self._waiting) > 1:
                return
        self._post(self._run)

    def _run(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
