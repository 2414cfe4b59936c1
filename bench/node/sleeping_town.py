"""A shard and a waker without sockets and disks, in which devices sleep: what waking costs, and whom it wakes.

Knows:   who has mail, who is connected, and which devices were pushed to.
Touches: nothing outside the process; time is the town's own.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRegistry, MemoryRows
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.forms import Form
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import AnyBody, Envelope, PushOutcome, PushSet, Record, Registered, Sent
from nightmail.model.words import Kind, Lane, Platform, PushPlatform
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.waker import PushWaker, WakerLimits

TAKEN = PushResult(PushOutcome.DELIVERED)
START_MS = 1_700_000_000_000


class SleepingTown:
    """People 1 to `count` sleep, with a token each if `has_tokens`; person 0 writes."""

    def __init__(self, count: int, *, has_tokens: bool = True) -> None:
        self.now = 1_000_000
        self.pushed: list[int] = []
        """Devices, in the order in which they were woken."""
        desk = LoopDesk(lambda size: b"\1" * size, self._pace)
        self._loop = Loop(
            MemoryLog(), MemoryRows(), lambda: START_MS + self.now, desk.on_effects, pace=self._pace
        )  # fmt: skip
        registry = MemoryRegistry()
        self._waker = PushWaker(desk, registry, self, self._pace, lambda: None, WakerLimits(grace_ms=0))
        gateway = Gateway(
            desk, registry, Form(), GatewayLimits(), lambda: 0, self._pace, "bench", lambda: None, lambda: 0.0
        )  # fmt: skip
        desk.attend(self._loop, gateway, on_wake=self._waker.wake)
        self._loop.recover()
        while not self._loop.adopt(NEWEST_FOLD, FoldLimits()):
            pass
        self.accounts = [account_id(f"p{n}") for n in range(count + 1)]
        for n, account in enumerate(self.accounts):
            name = f"p{n}"
            self._fold(SERVER, Registered(account, name, 7, name.encode().rjust(32), "x", Platform.CLI))
            if has_tokens:
                token = PushSet(PushPlatform.UNIFIEDPUSH, f"https://push.example/{name}")
                self._fold(device_id(account, 1), token)
        self._sent: dict[int, int] = {}

    def _pace(self) -> int:
        return self.now

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        self.pushed.append(seen.device)
        done(TAKEN)

    def write(self, person: int, kind: Kind = Kind.TEXT) -> None:
        """A message for somebody who sleeps."""
        by, account = device_id(self.accounts[0], 1), self.accounts[person]
        n = self._sent[person] = self._sent.get(person, 0) + 1
        ident = f"{by:x}:1700000000000:{n:05d}:x"
        envelope = Envelope(device_id(account, 1), 7, bytes(200))
        self._fold(by, Sent(account, Lane.NORMAL, n, 1, 0, ident, bytes(16), kind, None, 0, 1, (envelope,), ()))

    def go_on(self, ms: int, tick_ms: int = 50) -> None:
        """Let time pass, tick by tick, as a node does."""
        end = self.now + ms
        while self.now < end:
            self.now = min(end, self.now + tick_ms)
            self._loop.tick()
            self._waker.tick()
            self._loop.flush()

    def _fold(self, by: int, body: AnyBody) -> None:
        self._loop.submit(Record(by, 0, body))
        self._loop.flush()
