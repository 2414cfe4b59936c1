from __future__ import annotations

from collections.abc import Sequence

from nightmail.model.records.schedules import CallOutcome
from nightmail.outlets import outcomes
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.outcomes import DONE, CallResult
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.ports import Ended, WebhookCall

LIMITS = PlaceLimits(calls=3, host_calls=2, unproven_calls=1, unproven_wait_ms=100)


class ByHand:
    """An outlet whose calls end when the test says so."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}
        self.tell: Ended
        self.is_ready = True

    def attend(self, ended: Ended) -> None:
        self.tell = ended

    def begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        self.begun |= {call.id: number for number, call in calls}

    def end(self, ident: str, result: CallResult = DONE) -> None:
        self.tell([(self.begun.pop(ident), result)])

    def close(self) -> None:
        pass


class Rig:
    def __init__(self) -> None:
        self.outlet, self.now = ByHand(), 0
        self.dispatch = Dispatch(self.outlet, LIMITS, lambda: self.now)
        self.ended: list[tuple[str, CallResult]] = []

    def submit(self, ident: str, url: str = "https://x.test/") -> None:
        call = WebhookCall(ident, url, b"{}", b"")
        self.dispatch.submit(call, lambda result: self.ended.append((ident, result)))


def test_a_call_begins_when_there_is_a_place_and_ends_once() -> None:
    rig = Rig()
    for ident in ("a", "b", "c", "d"):
        rig.submit(ident)
    assert list(rig.outlet.begun) == ["a"]
    rig.outlet.end("a")
    assert list(rig.outlet.begun) == ["b", "c"]
    rig.outlet.end("c", outcomes.TIMED_OUT)
    rig.outlet.end("b")
    rig.outlet.end("d")
    assert rig.ended == [("a", DONE), ("c", outcomes.TIMED_OUT), ("b", DONE), ("d", DONE)]
    assert rig.dispatch.ended == {CallOutcome.DELIVERED: 3, CallOutcome.FAILED: 1}


def test_what_is_no_address_has_ended_at_once() -> None:
    rig = Rig()
    rig.submit("a", "mailto:ada@example.org")
    assert (rig.outlet.begun, rig.ended) == ({}, [("a", outcomes.BAD_TARGET)])


def test_a_call_to_a_receiver_that_hangs_fails_after_a_while_and_may_be_repeated() -> None:
    rig = Rig()
    rig.submit("a")
    rig.submit("b")
    rig.now = 100
    rig.dispatch.tick()
    assert rig.ended == [("b", outcomes.NO_PLACE)]
    assert outcomes.NO_PLACE.outcome is CallOutcome.FAILED


def test_while_nobody_makes_calls_none_fails() -> None:
    rig = Rig()
    rig.outlet.is_ready = False
    rig.submit("a")
    rig.submit("b")
    rig.now = 1_000
    rig.dispatch.tick()
    rig.outlet.is_ready = True
    rig.now = 1_099
    rig.dispatch.tick()
    assert rig.ended == []
    rig.now = 1_100
    rig.dispatch.tick()
    assert rig.ended == [("b", outcomes.NO_PLACE)]
