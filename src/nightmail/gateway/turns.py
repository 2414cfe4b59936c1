"""Whose turn it is: in one turn of the event loop each session sends at most one frame.

Knows:   the sessions with pending output, those that catch up (drains), the first requests to be looked at, the
         newcomers to be checked, the HTTP requests to be begun, and what has more to do than its share of a turn:
         connections that are read from, and the telling of many watchers.
Touches: a session, by `flush`.
Never:   knows what a session sends.

Live traffic goes first, as often as something is durable. Everybody else gets a few places, once in each turn: of the
drains, the devices that were connected most recently go first; under pressure each of them waits for the next tick
before it continues. Those who come take turns by network (`fair_queue.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from .fair_queue import FairQueue
from .ports import SessionPort

SEEN_DEVICES = 100_000
"""Devices whose last visit is remembered, so that those that were just here can go first."""
HEADS_AT_ONCE = 32
"""First requests of connections that are looked at in one turn: most of a flood is refused, at 20 µs each."""
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
        self._heads = FairQueue[Callable[[], None]]()
        self._newcomers = FairQueue[Callable[[], None]]()
        self._requests = FairQueue[Callable[[], None]]()
        self._last_seen: dict[int, int] = {}
        self._waiting = FairQueue[Callable[[], None]]()
        """What has used its share of a turn and has more to do. Of no network: they take turns as they come."""
        self._coming = 0
        """How many wait in these four."""

    def look(self, decide: Callable[[], None], network: str = "") -> None:
        """Look at a connection's first request when it is its turn."""
        self._wait(self._heads, decide, network)

    def greet(self, check: Callable[[], None], network: str = "") -> None:
        """Check a newcomer when it is its turn."""
        self._wait(self._newcomers, check, network)

    def request(self, begin: Callable[[], None], network: str = "") -> None:
        """Begin an HTTP request when it is its turn."""
        self._wait(self._requests, begin, network)

    def next_turn(self, go_on: Callable[[], None]) -> None:
        """Go on in a later turn, after those that wait already: with reading from a connection, or with telling."""
        self._wait(self._waiting, go_on, "")

    def _wait(self, among: FairQueue[Callable[[], None]], then: Callable[[], None], network: str) -> None:
        among.add(then, network)
        self._coming += 1
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

    def flush_live(self, now: int, *, pressed: bool) -> None:
        """Something is durable: one frame for each session that is ready. Who catches up waits for the turn's end."""
        self._flush_ready(now, pressed)
        if self._ready or self._drains:
            self._soon()

    def flush(self, now: int, *, pressed: bool) -> None:
        """End the turn: live sessions first, then a few of each kind that waits. Once in a turn."""
        self._flush_ready(now, pressed)
        if self._drains:
            self._flush_drains(now, pressed)
        if self._coming:
            self._let_in()
        if self._ready or self._drains:
            self._soon()

    def _flush_ready(self, now: int, pressed: bool) -> None:
        ready, self._ready = self._ready, []
        for session in ready:
            if session.draining:
                self._queue_drain(session)
            else:
                session.queued = False
                if session.flush(now, pressed=pressed):
                    self.ready(session)

    def _let_in(self) -> None:
        """The next few of each kind that wait for a turn."""
        for waiting, at_once in (
            (self._heads, HEADS_AT_ONCE),
            (self._newcomers, self.drains_at_once),
            (self._requests, REQUESTS_AT_ONCE),
            (self._waiting, self.drains_at_once),
        ):
            for _ in range(min(at_once, len(waiting))):
                self._coming -= 1
                waiting.take()()
        if self._coming:
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
