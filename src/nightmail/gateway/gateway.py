"""All connections of one node: which devices are connected, and what each of them has to be told.

Knows:   the sessions, by device.
Touches: the desk and the registry; sessions, by what `ports.SessionPort` names.
Never:   a socket: each session has a link.

Who may connect is decided in `admission.py`, whose turn it is in `turns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nightmail.engine.ports import Desk, Presence, Registry, Seat
from nightmail.model.forms import Form
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.records import Record
from nightmail.model.words import Lane
from nightmail.wire.closing import CloseCode
from nightmail.wire.networks import network

from .admission import Admission
from .budgets import Budgets
from .group_limits import GroupLimits
from .groups import NodeGroups
from .limits import GatewayLimits
from .ports import DeviceWaker, Link, SessionPort, Shared
from .presence import NodePresence
from .presence_limits import PresenceLimits
from .pump import RECEIPTS
from .session import Session
from .turns import Turns

INDEX_MASK = (1 << DEVICE_BITS) - 1
"""Of a device's number. No device has the index 0: that is a group's log."""


class Gateway:
    """A `Listener` for the desk, a `Host` for its sessions."""

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
        presence: tuple[Presence, PresenceLimits] | None = None,
        groups: GroupLimits | None = None,
        waker: DeviceWaker | None = None,
    ) -> None:
        """`soon` asks for a call of `flush` at the end of this turn; `chance` draws from 0 to 1.

        Without `presence`, devices are told that nothing of it is known here; without a `waker` none is woken.
        """
        self.shared = shared = Shared(desk, form, limits, clock, pace, node)
        self.counters = shared.counters
        self.admission = Admission(limits, shared.counters, pace, chance)
        self.turns = Turns(limits.drains_at_once, soon)
        # Called several times for each message: without another call in between.
        self.ready, self.greet = self.turns.ready, self.turns.greet
        self.presence = NodePresence(shared, self.turns.next_turn, *presence) if presence else None
        self.groups = NodeGroups(shared, groups or GroupLimits())
        self._desk, self._registry, self._pace, self._soon = desk, registry, pace, soon
        self._waker = waker
        self.pressed = False
        self.stopping = False
        self._submitting = False
        self._sessions: dict[SessionPort, None] = {}
        """In the order in which they connected."""
        self._live: dict[int, SessionPort] = {}
        self.budgets = Budgets(limits, shared.counters, pace())
        self._stop_from = self._to_stop = 0
        registry.attend(self._on_displaced)

    @property
    def connections(self) -> int:
        return len(self._sessions)

    @property
    def devices(self) -> int:
        return len(self._live)

    @property
    def stopped(self) -> bool:
        return self.stopping and not self._sessions

    # --- sessions come and go -----------------------------------------------------------------

    def admit(self, address: str = "") -> int:
        """Admit one more connection and return 0, or return after how many ms it should try again."""
        return 1 if self.stopping else self.admission.wait_ms(address)

    def open(self, link: Link, address: str = "") -> Session:
        """A session for a connection that was admitted. It has yet to say which device it is."""
        now, shared = self._pace(), self.shared
        session = Session(self, shared, link, now, address)
        self._sessions[session] = None
        shared.wheel.add(now + shared.limits.hello_ms, session.on_silence)
        self.admission.add_stranger(session, network(address))
        return session

    def seat(self, session: SessionPort, line: int) -> Seat:
        now, since = self._pace(), self.shared.clock()
        self.admission.remove_stranger(session)
        if (older := self._live.get(session.device)) and older.seat:
            since = max(since, older.seat.since + 1)  # The clock may have been set back.
        seat = Seat(self.shared.node, line, since)
        # Before the older one gets up: between two seats the device would pass for asleep.
        self._registry.take(session.device, seat, now)
        if older := self._live.get(session.device):
            self.counters.displaced += 1
            older.close(CloseCode.DISPLACED)
        self._live[session.device] = session
        self._desk.note_connection(session.device, here=True)
        self._saw(session, now)
        self.counters.connected += 1
        if self._waker is not None:
            self._waker.came(session.device)
        return seat

    def suspect(self, session: SessionPort) -> None:
        self.counters.suspected += 1
        self._leave_seat(session)

    def _leave_seat(self, session: SessionPort) -> None:
        """Only the seat that counts is left: a device whose newer connection is elsewhere does not sleep."""
        if session.seat:
            self._registry.leave(session.device, session.seat, partial(self._left, session.device))

    def _left(self, device: int, is_seat_free: bool) -> None:
        if is_seat_free and self._waker is not None:
            self._waker.left(device)

    def _on_displaced(self, device: int, seat: Seat) -> None:
        """The device has connected to another node since."""
        session = self._live.get(device)
        if session is not None and session.seat == seat:
            self.counters.displaced += 1
            session.close(CloseCode.DISPLACED)

    def renew_seat(self, session: SessionPort, now: int) -> None:
        if session.seat:
            self._registry.take(session.device, session.seat, now)
            self._saw(session, now)

    def _saw(self, session: SessionPort, now: int) -> None:
        if self.presence is not None:
            self.presence.presence.saw(session.device, now - session.heard)

    def remove(self, session: SessionPort) -> None:
        self.admission.remove_stranger(session)
        if session not in self._sessions:
            return
        del self._sessions[session]
        self.counters.closed += 1
        if self._live.get(session.device) is session:
            del self._live[session.device]
            self._desk.note_connection(session.device, here=False)
            self.turns.saw(session.device, session.heard)
            self._saw(session, self._pace())
        self._leave_seat(session)

    # --- records in, news out -----------------------------------------------------------------

    def submit(self, records: Sequence[Record]) -> None:
        self.counters.submitted += len(records)
        self._submitting = True
        self._desk.submit(records)
        self._submitting = False
        self._soon()

    def grew(self, device: int, lane: Lane) -> None:
        if session := self._live.get(device):
            session.grew(lane)
        elif not device & INDEX_MASK and lane is Lane.NORMAL:
            self.groups.attended.grew(device >> DEVICE_BITS)

    def changed(self, device: int) -> None:
        if session := self._live.get(device):
            session.grew(RECEIPTS)

    def dismissed(self, device: int) -> None:
        if session := self._live.get(device):
            session.close(CloseCode.REMOVED)
        if self.presence is not None:
            self.presence.dismissed(device)

    def low(self, device: int) -> None:
        self.budgets.low(device, self._pace())
        if session := self._live.get(device):
            session.low()

    def settled(self) -> None:
        # Immediate answers, as to a retry, wait for the end of the turn, so that they share one frame.
        if not self._submitting:
            self.turns.flush_live(self._pace(), pressed=self.pressed)

    def flush(self) -> None:
        """End the turn."""
        self.turns.flush(self._pace(), pressed=self.pressed)

    # --- time ---------------------------------------------------------------------------------

    def press(self, lag_ms: int, commit_ms: int) -> None:
        """Judge the pressure: how late the event loop is, and how long the last commit took."""
        limits = self.shared.limits
        self.pressed = lag_ms > limits.pressure_lag_ms or commit_ms > limits.pressure_commit_ms

    def tick(self, now: int) -> None:
        self.shared.wheel.turn(now)
        self.admission.tick(now)
        self.turns.tick()
        if self.presence is not None:
            self.presence.tick(now)
        if self.stopping:
            self._send_away(now)

    def stop(self, now: int) -> None:
        """Admit nobody any more, and send all devices elsewhere, one after the other."""
        self.stopping, self._stop_from = True, now
        self._to_stop = len(self._sessions)
        if self._waker is not None:
            self._waker.stop()

    def _send_away(self, now: int) -> None:
        share = min(1.0, (now - self._stop_from + 1) / max(1, self.shared.limits.stop_ms))
        keep = int(self._to_stop * (1 - share))
        while len(self._sessions) > keep:
            next(iter(self._sessions)).close(CloseCode.DRAINING)
