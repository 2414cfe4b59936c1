"""Whose turn it is: in one turn of the event loop each session sends at most one frame.

Knows:   the sessions with pending output, those that catch up (drains), the newcomers to be checked, the HTTP requests
         to be begun, and what has more to do than its share of a turn: connections that are read from, and the
         telling of many watchers.
Touches: a session, by `flush`.
Never:   knows what a session sends.

Live traffic goes first. Of the drains, the devices that were connected most recently go first, a few per
turn; under pressure each of them waits for the next tick before it continues.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from .ports import SessionPort

SEEN_DEVICES = 100_000
"""Devices whose last visit is remembered, so that those that were just here can go first."""
REQUESTS_AT_ONCE = 2
"""HTTP requests that are begun in one turn: each costs as much as several newcomers, who do not wait behind them."""


class Turns:
    def __init__(self, drains_at_once: int, soon: Callable[[], None]) -> None:
        self.drains_at_once = drains_at_once
        """Drains per turn, newcomers per turn, and connections that are read on from per turn."""
        self._soon = soon
        self._ready: list[SessionPort] = []
        self._drains: list[tuple[int, int, SessionPort]] = []
        """Drains that may send their next batch: a heap, the most recently seen device first."""
        self._drain_count = 0
        self.paced: list[SessionPort] = []
        """Drains that wait for the next tick, because the server is under pressure."""
        self._newcomers: deque[Callable[[], None]] = deque()
        self._requests: deque[Callable[[], None]] = deque()
        self._last_seen: dict[int, int] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        """What has used its share of a turn and has more to do."""

    def greet(self, check: Callable[[], None]) -> None:
        """Check a newcomer when it is its turn."""
        self._newcomers.append(check)
        self._soon()

    def request(self, begin: Callable[[], None]) -> None:
        """Begin an HTTP request when it is its turn."""
        self._requests.append(begin)
        self._soon()

    def next_turn(self, go_on: Callable[[], None]) -> None:
        """Go on in a later turn, after those that wait already: with reading from a connection, or with telling."""
        self._waiting.append(go_on)
        self._soon()

    def saw(self, device: int, at: int) -> None:
        """The device has disconnected; it was last heard at `at`."""
        self._last_seen.pop(device, None)
        self._last_seen[device] = at
        if len(self._last_seen) > SEEN_DEVICES:
            del self._last_seen[next(iter(self._last_seen))]

    def ready(self, session: SessionPort) -> None:
        """The session has something to send or to pull: at the end of this turn."""
        if not session.queued:
            session.queued = True
            if not self._ready:
                self._soon()
            self._ready.append(session)

    def flush(self, now: int, *, pressed: bool) -> None:
        """End the turn: one frame for each session that is ready, but only for a few of the drains."""
        ready, self._ready = self._ready, []
        for session in ready:
            if session.draining:
                self._queue_drain(session)
            else:
                session.queued = False
                if session.flush(now, pressed=pressed):
                    self.ready(session)
        if self._drains:
            self._flush_drains(now, pressed)
        if self._newcomers or self._requests or self._waiting:
            self._let_in()
        if self._ready or self._drains:
            self._soon()

    def _let_in(self) -> None:
        """The next few of each kind that wait for a turn."""
        for waiting, at_once in (
            (self._newcomers, self.drains_at_once),
            (self._requests, REQUESTS_AT_ONCE),
            (self._waiting, self.drains_at_once),
        ):
            for _ in range(min(at_once, len(waiting))):
                waiting.popleft()()
        if self._newcomers or self._requests or self._waiting:
            self._soon()

    def tick(self) -> None:
        """Let the paced drains continue."""
        paced, self.paced = self.paced, []
        for session in paced:
            self.ready(session)

    def _queue_drain(self, session: SessionPort) -> None:
        self._drain_count += 1
        heapq.heappush(self._drains, (-self._last_seen.get(session.device, 0), self._drain_count, session))

    def _flush_drains(self, now: int, pressed: bool) -> None:
        for _ in range(min(self.drains_at_once, len(self._drains))):
            _, _, session = heapq.heappop(self._drains)
            session.queued = False
            if session.flush(now, pressed=pressed):
                if pressed and session.draining:
                    self.paced.append(session)
                else:
                    self.ready(session)
