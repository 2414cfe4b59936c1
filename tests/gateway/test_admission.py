"""How many newcomers are admitted, and how many may stay unknown."""

from __future__ import annotations

from nightmail.gateway.admission import Admission
from nightmail.gateway.counters import Counters
from nightmail.gateway.limits import GatewayLimits
from nightmail.wire.closing import SENTENCES, CloseCode
from tests.gateway.rig import a_town


class Newcomer:
    """A `Caller` that remembers whether it was turned away."""

    def __init__(self) -> None:
        self.turned_away = 0

    def turn_away(self) -> None:
        self.turned_away += 1


def an_admission(limits: GatewayLimits) -> tuple[Admission, Counters]:
    counters = Counters()
    return Admission(limits, counters, lambda: 0, lambda: 0.0), counters


def test_so_many_are_admitted_at_once_and_each_of_the_others_gets_a_turn_of_its_own() -> None:
    town = a_town(GatewayLimits(connects_per_s=10, connects_burst=3, retry_ms=2_000))
    town.chance = 0.25
    assert [town.gateway.admit() for _ in range(5)] == [0, 0, 0, 2_500, 2_600]
    assert town.gateway.counters.not_admitted == 2
    town.wait(100)
    assert [town.gateway.admit() for _ in range(2)] == [0, 2_600]


def test_beyond_so_many_strangers_the_one_who_came_first_is_let_go() -> None:
    town = a_town(GatewayLimits(strangers=3))
    known = town.connect()
    strangers = [town.stranger() for _ in range(5)]
    busy = CloseCode.BUSY, SENTENCES[CloseCode.BUSY]
    assert [each.link.closed for each in strangers] == [busy, busy, None, None, None]
    assert (known.link.closed, town.gateway.counters.strangers_dropped) == (None, 2)


def test_strangers_who_come_and_go_leave_no_room_taken() -> None:
    town = a_town(GatewayLimits(strangers=3))
    for _ in range(10):
        town.stranger().session.lost()
    strangers = [town.stranger() for _ in range(3)]
    assert [each.link.closed for each in strangers] == [None, None, None]
    assert (town.gateway.connections, town.gateway.counters.closed) == (3, 10)


def test_of_too_many_callers_the_oldest_is_turned_away_once() -> None:
    admission, counters = an_admission(GatewayLimits(strangers=2))
    callers = [Newcomer() for _ in range(4)]
    for caller in callers:
        admission.add_caller(caller)
    assert ([each.turned_away for each in callers], counters.strangers_dropped) == ([1, 1, 0, 0], 2)


def test_a_caller_whose_request_has_arrived_takes_no_room() -> None:
    admission, counters = an_admission(GatewayLimits(strangers=2))
    callers = [Newcomer() for _ in range(4)]
    for caller in callers:
        admission.add_caller(caller)
        admission.remove_caller(caller)
        admission.remove_caller(caller)
    assert ([each.turned_away for each in callers], counters.strangers_dropped) == ([0, 0, 0, 0], 0)


def test_chance_spreads_those_that_are_refused() -> None:
    limits = GatewayLimits(connects_per_s=1_000, connects_burst=1, retry_ms=1_000)
    chances = iter((0.0, 0.5, 0.999))
    admission = Admission(limits, Counters(), lambda: 0, lambda: next(chances))
    assert [admission.wait_ms() for _ in range(4)] == [0, 1_000, 1_501, 2_001]
