"""A gateway in the simulated world: what a node's event loop does for the real one.

Knows:   the connections it has, and whose turn it is.
Touches: the gateway and its sessions, always under the guard of the machine it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.ports import REF_BITS, Desk, Registry, Seat
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.ports import SessionPort
from nightmail.model.answers import Said
from nightmail.model.forms import Form
from nightmail.model.limits import FoldLimits, FormLimits
from nightmail.model.records import AnyBody, Record
from nightmail.outlets.push.ports import Pusher
from nightmail.outlets.push.waker import PushWaker, WakerLimits
from nightmail.wire.closing import CloseCode

from .network import Wire
from .world import World

PRESSED_MS = (300, 3_000)
"""How long the server is under pressure, and how long it is not."""


WAKER_LIMITS = WakerLimits(grace_ms=1_200, again_ms=1_500, told_ms=800, woken_ms=2_000)


class Connections:
    """What is true of connections, whatever the registry knows."""

    def __init__(self) -> None:
        self.newest: dict[int, Seat] = {}
        """Device → its newest connection, wherever that is."""
        self.changed_at: dict[int, int] = {}
        """Device → when it last came, left, or stopped answering."""


class Limits(NamedTuple):
    fold: FoldLimits
    gateway: GatewayLimits
    version: int = NEWEST_FOLD
    """The fold that every shard is raised to at the beginning."""


class Backend(Protocol):
    """Whatever people connect to: one node, or a cluster with several doors."""

    @property
    def addresses(self) -> Sequence[str]: ...

    def front(self, address: str) -> Front | None:
        """Who listens there; None: nobody does at the moment."""
        ...

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None:
        """As over HTTP: no connection is needed, and the answer may never come."""
        ...


class WatchedGateway(Gateway):
    """Counts what is worth counting. Changes nothing."""

    world: World
    seen: Connections
    suspects: set[int]

    def holds(self, device: int) -> bool:
        session = self._live.get(device)
        return session is not None and not session.suspect and session.seat == self.seen.newest.get(device)

    def seat(self, session: SessionPort, line: int) -> Seat:
        before = self.counters.displaced
        self.suspects.discard(session.device)
        seat = super().seat(session, line)
        if self.counters.displaced > before:
            self.world.hit("displaced")
        self.seen.newest[session.device] = seat
        self.seen.changed_at[session.device] = self.world.now
        return seat

    def remove(self, session: SessionPort) -> None:
        if session.device:
            self.seen.changed_at[session.device] = self.world.now
        super().remove(session)

    def suspect(self, session: SessionPort) -> None:
        self.world.hit("suspected")
        self.seen.changed_at[session.device] = self.world.now
        self.suspects.add(session.device)
        super().suspect(session)

    def renew_seat(self, session: SessionPort, now: int) -> None:
        if session.device in self.suspects:
            self.suspects.discard(session.device)
            self.seen.changed_at[session.device] = now
            self.world.hit("suspect then restored")
        super().renew_seat(session, now)

    def flush(self) -> None:
        super().flush()
        if self.turns.paced:
            self.world.hit("drain paced")


class Front:
    def __init__(
        self,
        world: World,
        name: str,
        desk: Desk,
        registry: Registry,
        limits: Limits,
        clock: Callable[[], int],
        guard: Callable[[Callable[[], None]], None],
        flush_below: Callable[[], None],
        pusher: Pusher,
        connections: Connections,
    ) -> None:
        self.world, self.name, self.registry = world, name, registry
        self._guard, self._flush_below = guard, flush_below
        form = Form(FormLimits(lifetime_ms_min=1), limits.fold)
        self.waker = PushWaker(desk, registry, pusher, lambda: world.now, self._soon, WAKER_LIMITS)
        self.gateway = WatchedGateway(
            desk, registry, form, limits.gateway, clock, lambda: world.now, name, self._soon, world.chance.random,
            waker=self.waker,
        )  # fmt: skip
        self.gateway.world, self.gateway.seen, self.gateway.suspects = world, connections, set()
        self._wires: dict[Wire, None] = {}
        self._alive = True
        self._flushing = False
        self._pressed = self._calm = False
        self._answers: dict[int, Callable[[Said], None]] = {}
        self._line = desk.open_line(self._answered)

    # --- what comes over the wires ----------------------------------------------------------------

    def knock(self, wire: Wire) -> None:
        if not self._alive:
            wire.refuse(0)
        elif wait_ms := self.gateway.admit():
            self.world.hit("refused while stopping" if self.gateway.stopping else "admission refused")
            wire.refuse(wait_ms)
        else:
            self._wires[wire] = None
            wire.accept(self, self.gateway.open(wire))

    def hear(self, wire: Wire, frame: bytes) -> None:
        session = wire.session
        if self._alive and session is not None:
            self._guard(lambda: session.receive(frame, self.world.now))

    def hung_up(self, wire: Wire) -> None:
        if self._alive and wire.session is not None:
            self._guard(partial(wire.session.close, CloseCode.NORMAL))

    def lost(self, wire: Wire) -> None:
        self._wires.pop(wire, None)
        if self._alive and wire.session is not None:
            self._guard(wire.session.lost)

    def wake(self, wire: Wire) -> None:
        if self._alive and wire.session is not None:
            self._guard(wire.session.wake)

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None:
        ref = len(self._answers) + 1
        self._answers[ref] = answer
        self._guard(lambda: self.gateway.submit([Record(by, self._line << REF_BITS | ref, body)]))

    def _answered(self, ref: int, said: Said) -> None:
        self._answers[ref](said)

    # --- turns ------------------------------------------------------------------------------------

    def _soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self.world.later(0, self._turn)

    def _turn(self) -> None:
        if self._alive:
            self._flushing = False
            self._guard(self._flush)

    def _flush(self) -> None:
        self.gateway.flush()
        self._flush_below()

    def tick(self) -> None:
        self.gateway.tick(self.world.now)
        self.waker.tick()

    def holds(self, device: int) -> bool:
        """Whether the device is connected here, by its newest connection, and answers."""
        return self.gateway.holds(device)

    def press_now_and_then(self) -> None:
        if self._alive and not self._calm:
            self._pressed = not self._pressed
            self.gateway.press(1_000 if self._pressed else 0, 0)
            self.world.later(self.world.between(*PRESSED_MS), self.press_now_and_then)

    def heal(self) -> None:
        self._calm = True
        self.gateway.press(0, 0)

    # --- the end ----------------------------------------------------------------------------------

    def end(self, *, silently: Callable[[], bool]) -> None:
        """The process is gone, and with it every connection and all that was known of it."""
        self._alive = False
        wires, self._wires = self._wires, {}
        for wire in wires:
            wire.orphan(silently=silently())
