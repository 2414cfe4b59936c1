"""All connections of one node: who is here, who has something to hear, who may come in.

Knows:   the sessions, by device; whose turn it is.
Touches: the desk and the registry.
Never:   a socket: sessions have a link each.

In one turn of the event loop each connection gets at most one frame. Live traffic goes first; of the
devices that catch up, the most recently seen ones, a few per turn.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from nightmail.engine.ports import Desk, Registry, Seat
from nightmail.model.forms import Form
from nightmail.model.records import Pace, Record
from nightmail.model.words import Lane
from nightmail.wire.closing import CloseCode

from .counters import Counters
from .limits import GatewayLimits
from .pump import CHANGES
from .rates import Bucket, Shares
from .session import Link, Session
from .wheel import Wheel

SEEN_DEVICES = 100_000
"""Devices whose last visit is remembered, to let those come first who were here a moment ago."""


COUNTED = 10_000
"""Accounts whose claims (or links) are counted: some 2 MB. To be forgotten, one must be quieter than all these."""


class Caller(Protocol):
    """Somebody at the door."""

    def turn_away(self) -> None: ...


class Gateway:
    """A `Listener`."""

    def __init__(
        self,
        desk: Desk,
        registry: Registry,
        form: Form,
        limits: GatewayLimits,
        clock: Callable[[], int],
        pace: Callable[[], int],
        node: str,
        soon: Callable[[], None],
        chance: Callable[[], float],
    ) -> None:
        self.desk, self.form, self.limits, self.clock, self.node = desk, form, limits, clock, node
        self._registry, self._pace, self._soon, self._chance = registry, pace, soon, chance
        now = pace()
        self.items_max = limits.items_burst + limits.sends_burst
        """Items in one frame: with more, it is above one of the limits in any case."""
        self.wheel = Wheel(now)
        self.counters = Counters()
        self.pressed = False
        self.stopping = False
        self._submitting = False
        self._sessions: dict[Session, None] = {}
        """In the order in which they came."""
        self._live: dict[int, Session] = {}
        self._strangers: dict[Session, None] = {}
        self._callers: dict[Caller, None] = {}
        self._ready: list[Session] = []
        self._drains: list[tuple[int, int, Session]] = []
        """Those who catch up and may get their next batch: a heap, the most recently seen first."""
        self._drain_count = 0
        self._greetings: deque[Callable[[], None]] = deque()
        self._last_seen: dict[int, int] = {}
        self._shares: dict[Pace, tuple[Shares, str]] = {
            Pace.CLAIM: (Shares(limits.claims_per_minute, COUNTED), "claims_limited"),
            Pace.LINK: (Shares(limits.links_per_minute, COUNTED), "links_limited"),
        }
        """What an account may do so many times in a minute, over all its connections; and what counts the noes."""
        self._admission = Bucket(limits.connects_per_s, limits.connects_burst, now)
        self._turn = 0.0
        """When the last one who was not admitted may come back."""
        self._paced: list[Session] = []
        """Those who catch up, and have had enough for the moment."""
        self._stop_from = self._to_stop = 0

    def now(self) -> int:
        return self._pace()

    @property
    def connections(self) -> int:
        return len(self._sessions)

    @property
    def devices(self) -> int:
        return len(self._live)

    @property
    def stopped(self) -> bool:
        return self.stopping and not self._sessions

    # --- coming and going ---------------------------------------------------------------------

    def admit(self) -> int:
        """May another connection come in? 0: yes. Otherwise: come back after so many ms."""
        if self.stopping:
            return 1
        now, limits = self._pace(), self.limits
        if self._admission.take(now):
            return 0
        self.counters.not_admitted += 1
        # Everyone gets a turn of their own: sent away together, they would only come back together.
        self._turn = max(self._turn + 1_000 / limits.connects_per_s, now + limits.retry_ms)
        return int(self._turn - now + limits.retry_ms * self._chance())

    def knocks(self, caller: Caller) -> None:
        """A connection from which no whole request has come yet."""
        self._callers[caller] = None
        if len(self._callers) > self.limits.strangers:
            self.counters.strangers_dropped += 1
            oldest = next(iter(self._callers))
            del self._callers[oldest]
            oldest.turn_away()

    def enters(self, caller: Caller) -> None:
        """It has said what it wants, or is gone."""
        self._callers.pop(caller, None)

    def open(self, link: Link) -> Session:
        """A connection that was admitted. It has yet to say who it is."""
        now = self._pace()
        session = Session(self, link, now)
        self._sessions[session] = self._strangers[session] = None
        self.wheel.add(now + self.limits.hello_ms, session.on_silence)
        if len(self._strangers) > self.limits.strangers:
            self.counters.strangers_dropped += 1
            next(iter(self._strangers)).close(CloseCode.BUSY)
        return session

    def greet(self, check: Callable[[], None]) -> None:
        """Somebody comes in, or says who they are: looked at in turn, a few at a time."""
        self._greetings.append(check)
        self._soon()

    def seat(self, session: Session, line: int) -> None:
        """The device is known now, and whoever was connected as the same device before has to go."""
        now = self._pace()
        self._strangers.pop(session, None)
        if older := self._live.get(session.device):
            self.counters.displaced += 1
            older.close(CloseCode.DISPLACED)
        self._live[session.device] = session
        self.desk.note_connection(session.device, here=True)
        session.seat = Seat(self.node, line, now)
        self._registry.take(session.device, session.seat, now)
        self.counters.connected += 1

    def is_suspect(self, session: Session) -> None:
        """It does not acknowledge: for everybody else it counts as offline."""
        self.counters.suspected += 1
        if session.seat:
            self._registry.leave(session.device, session.seat)

    def stays(self, session: Session, now: int) -> None:
        """It is still here, or here again: for everybody else it counts as online."""
        if session.seat:
            self._registry.take(session.device, session.seat, now)

    def forget(self, session: Session) -> None:
        session.hang_up()
        self._strangers.pop(session, None)
        if session not in self._sessions:
            return
        del self._sessions[session]
        self.counters.closed += 1
        if session.seat:
            self._registry.leave(session.device, session.seat)
        if self._live.get(session.device) is session:
            del self._live[session.device]
            self.desk.note_connection(session.device, here=False)
            self._last_seen.pop(session.device, None)
            self._last_seen[session.device] = session.heard
            if len(self._last_seen) > SEEN_DEVICES:
                del self._last_seen[next(iter(self._last_seen))]

    # --- what is to be heard ------------------------------------------------------------------

    def submit(self, records: Sequence[Record]) -> None:
        self.counters.submitted += len(records)
        self._submitting = True
        self.desk.submit(records)
        self._submitting = False
        self._soon()

    def share_wait_ms(self, account: int, pace: Pace, now: int) -> int:
        """May it claim another key, or link another device? 0: yes, and that is counted. It survives a connection."""
        shares, noes = self._shares[pace]
        if wait_ms := shares.wait_ms(account, now):
            setattr(self.counters, noes, getattr(self.counters, noes) + 1)
        return wait_ms

    def ready(self, session: Session) -> None:
        """It has something to say or to pull: at the end of this turn."""
        if not session.queued:
            session.queued = True
            if not self._ready:
                self._soon()
            self._ready.append(session)

    def grew(self, device: int, lane: Lane) -> None:
        if session := self._live.get(device):
            session.grew(lane)

    def changed(self, device: int) -> None:
        if session := self._live.get(device):
            session.grew(CHANGES)

    def dismissed(self, device: int) -> None:
        if session := self._live.get(device):
            session.close(CloseCode.REMOVED)

    def low(self, device: int) -> None:
        if session := self._live.get(device):
            session.low()

    def settled(self) -> None:
        # What is answered at once, such as a retry, goes out at the end of the turn, all in one frame.
        if not self._submitting:
            self.flush()

    def flush(self) -> None:
        """One frame for everyone who is ready; of those who catch up, for a few."""
        now, pressed = self._pace(), self.pressed
        ready, self._ready = self._ready, []
        for session in ready:
            if session.draining:
                self._queue_drain(session)
            else:
                session.queued = False
                if session.flush(now, pressed=pressed):
                    self.ready(session)
        for _ in range(min(self.limits.drains_at_once, len(self._drains))):
            _, _, session = heapq.heappop(self._drains)
            session.queued = False
            if session.flush(now, pressed=pressed):
                if pressed and session.draining:
                    self._paced.append(session)
                else:
                    self.ready(session)
        for _ in range(min(self.limits.drains_at_once, len(self._greetings))):
            self._greetings.popleft()()
        if self._ready or self._drains or self._greetings:
            self._soon()

    def _queue_drain(self, session: Session) -> None:
        self._drain_count += 1
        heapq.heappush(self._drains, (-self._last_seen.get(session.device, 0), self._drain_count, session))

    # --- time ---------------------------------------------------------------------------------

    def press(self, lag_ms: int, commit_ms: int) -> None:
        """How late the event loop is, and how long the last commit took."""
        limits = self.limits
        self.pressed = lag_ms > limits.pressure_lag_ms or commit_ms > limits.pressure_commit_ms

    def tick(self, now: int) -> None:
        self.wheel.turn(now)
        paced, self._paced = self._paced, []
        for session in paced:
            self.ready(session)
        if self.stopping:
            self._send_away(now)

    def stop(self, now: int) -> None:
        """Let nobody in any more, and send everybody elsewhere, one after the other."""
        self.stopping, self._stop_from = True, now
        self._to_stop = len(self._sessions)

    def _send_away(self, now: int) -> None:
        share = min(1.0, (now - self._stop_from + 1) / max(1, self.limits.stop_ms))
        keep = int(self._to_stop * (1 - share))
        while len(self._sessions) > keep:
            next(iter(self._sessions)).close(CloseCode.DRAINING)
