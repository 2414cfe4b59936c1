"""Somebody else's server, and the outlet that calls it: every call may arrive, fail, hang, or be answered late.

Knows:   what arrived, when, and how it was answered.
Never:   asks the server under test: this is the evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from nightmail.model.answers import Done, Said
from nightmail.model.effects import Call
from nightmail.model.ids import SERVER
from nightmail.model.records import AnyBody, CallEnded, CallOutcome

from .world import World

AGAIN_MS = 300
CALL_MS = 30
TIMEOUT_MS = 900
LATE_MS = 5_000
ASKED_TIMES = 40


class Asks(Protocol):
    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None: ...


@dataclass
class Arrival:
    at: int
    attempt: int
    said: CallEnded


@dataclass
class Called:
    """All that arrived for one message."""

    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    told: list[CallEnded] = field(default_factory=list[CallEnded])
    """Outcomes that the server has taken down, in the order in which it said so."""
    succeeded: bool = False
    """By the word of the receiver."""
    contents: set[bytes] = field(default_factory=set[bytes])


class WebhookReceiver:
    def __init__(self, world: World) -> None:
        self.world = world
        self.called: dict[str, Called] = {}
        self.backend: Asks
        self.healing = False
        chance = world.chance
        self._success = chance.choice((0.0, 0.2, 0.5, 0.9))
        self._lost = chance.choice((0.0, 0.1, 0.3))
        """The outlet crashes before or after a call."""
        self._on_their_way: set[tuple[int, int, int]] = set()

    def call(self, call: Call) -> None:
        """An effect of the fold. The same one again is ignored while it is on its way."""
        key = call.account, call.serial, call.attempt
        if key in self._on_their_way:
            self.world.hit("a call that is on its way is asked for again")
            return
        if self._loses():
            self.world.hit("outlet crashed before a call")
            return
        self._on_their_way.add(key)
        self.world.later(self.world.between(0, CALL_MS), lambda: self._arrive(call))

    def _loses(self) -> bool:
        return not self.healing and self.world.maybe(self._lost)

    def _arrive(self, call: Call) -> None:
        ended = self._judge(call)
        called = self.called.setdefault(call.id, Called())
        called.arrivals.append(Arrival(self.world.now, call.attempt, ended))
        called.contents.add(call.content)
        called.succeeded = called.succeeded or ended.outcome is CallOutcome.DELIVERED
        if self._loses():
            self.world.hit("outlet crashed after a call")
            self._on_their_way.discard((call.account, call.serial, call.attempt))
            return
        delay_ms = self.world.between(0, CALL_MS)
        if ended.outcome is CallOutcome.DELIVERED and not self.healing and self.world.maybe(0.2):
            # The outlet gives up waiting, and says so; the answer comes all the same.
            self.world.hit("a late success")
            late = CallEnded(call.account, call.serial, call.attempt, CallOutcome.FAILED, "timeout")
            self.world.later(TIMEOUT_MS, lambda: self._tell(call, late, ASKED_TIMES))
            delay_ms = self.world.between(TIMEOUT_MS, LATE_MS)
        self.world.later(delay_ms, lambda: self._tell(call, ended, ASKED_TIMES))
        if not self.healing and self.world.maybe(0.5):
            self.world.hit("an outcome is told again, much later")
            self.world.later(self.world.between(200, LATE_MS), lambda: self.backend.ask(SERVER, ended, lambda _: None))

    def _judge(self, call: Call) -> CallEnded:
        chance, place = self.world.chance, (call.account, call.serial, call.attempt)
        if self.healing or chance.random() < self._success:
            return CallEnded(*place, CallOutcome.DELIVERED, "")
        match chance.randrange(16):
            case 0:
                return CallEnded(*place, CallOutcome.REFUSED, "http_404")
            case 1:
                return CallEnded(*place, CallOutcome.FAILED, "http_429", chance.choice((0, 3_000)))
            case 2 | 3:
                return CallEnded(*place, CallOutcome.FAILED, "timeout")
            case _:
                return CallEnded(*place, CallOutcome.FAILED, "http_503")

    def _tell(self, call: Call, ended: CallEnded, times: int) -> None:
        """Until it is taken down, or the outlet ends."""
        called = self.called[call.id]
        self._on_their_way.discard((call.account, call.serial, call.attempt))

        def answered(said: Said) -> None:
            if said == Done() and ended not in called.told:
                called.told.append(ended)

        def again() -> None:
            if ended not in called.told and (times > 0 or self.healing):
                self._tell(call, ended, times - 1)

        self.backend.ask(SERVER, ended, answered)
        self.world.later(AGAIN_MS, again)
