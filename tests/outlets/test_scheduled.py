from __future__ import annotations

from collections.abc import Sequence

from nightmail.engine.desk import LoopDesk
from nightmail.model.effects import Call
from nightmail.model.ids import SERVER
from nightmail.model.records import CallEnded, CallOutcome, Record
from nightmail.outlets import outcomes
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.outcomes import CallResult
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.scheduled import ScheduledCalls, WaitingLimits
from tests.outlets.test_dispatch import ByHand


class Desk(LoopDesk):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(bytes, lambda: 0)
        self.told: list[Record] = []

    def submit(self, records: Sequence[Record]) -> None:
        self.told += records


class Rig:
    def __init__(self, limits: WaitingLimits | None = None) -> None:
        self.outlet, self.desk, self.flushes = ByHand(), Desk(), 0
        self.calls = ScheduledCalls(
            self.desk, Dispatch(self.outlet, PlaceLimits(), lambda: 0), lambda account: b"secret of %d" % account,
            self._soon, limits or WaitingLimits(),
        )  # fmt: skip

    def _soon(self) -> None:
        self.flushes += 1

    def ask(self, serial: int, attempt: int = 1) -> None:
        self.calls.on_call(Call(7, serial, attempt, f"id-{serial}", f"https://x{serial}.test/", "text/plain", b"Hello"))


def ended(serial: int, attempt: int, outcome: CallOutcome, error: str = "", retry_after_ms: int = 0) -> Record:
    return Record(SERVER, 0, CallEnded(7, serial, attempt, outcome, error, retry_after_ms))


def test_the_end_of_a_call_is_told_with_all_that_the_receiver_asked_for() -> None:
    rig = Rig()
    rig.ask(1)
    rig.ask(2, attempt=3)
    rig.outlet.end("id-2", CallResult(CallOutcome.FAILED, "http_503", 2_000))
    rig.outlet.end("id-1")
    assert rig.desk.told == [
        ended(2, 3, CallOutcome.FAILED, "http_503", 2_000),
        ended(1, 1, CallOutcome.DELIVERED),
    ]
    assert rig.flushes == 2
    assert (dict(rig.calls.errors), dict(rig.calls.retries)) == ({"http_503": 1}, {CallOutcome.FAILED: 1})


def test_a_call_that_is_asked_for_again_while_it_is_made_is_made_once() -> None:
    rig = Rig()
    rig.ask(1)
    rig.ask(1)
    assert (len(rig.outlet.begun), rig.calls.waiting) == (1, 1)
    rig.outlet.end("id-1", outcomes.TIMED_OUT)
    rig.ask(1, attempt=2)
    assert len(rig.outlet.begun) == 1


def test_calls_beyond_what_may_wait_are_put_off() -> None:
    rig = Rig(WaitingLimits(waiting_calls=2))
    for serial in (1, 2, 3):
        rig.ask(serial)
    assert (sorted(rig.outlet.begun), rig.calls.put_off) == (["id-1", "id-2"], 1)
    rig.outlet.end("id-1")
    rig.ask(3)
    assert "id-3" in rig.outlet.begun
    heavy = Rig(WaitingLimits(waiting_bytes=4))
    heavy.ask(1)
    heavy.ask(2)
    assert (sorted(heavy.outlet.begun), heavy.calls.put_off) == (["id-1"], 1)
