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


def test_one_address_gets_its_share_and_takes_nothing_from_the_others() -> None:
    town = a_town(GatewayLimits(connects_burst=10, address_connects_per_s=1, address_connects_burst=2))
    admit = town.gateway.admit
    town.chance = 0
    assert [admit("192.0.2.1") for _ in range(4)] == [0, 0, 1_001, 1_001]
    assert [admit("192.0.2.2") for _ in range(2)] == [0, 0]
    town.wait(1_000)
    assert [admit("192.0.2.1") for _ in range(2)] == [0, 1_001]


def test_an_ipv6_network_cannot_be_left_for_the_next_one() -> None:
    limits = GatewayLimits(connects_burst=100, address_connects_per_s=1, address_connects_burst=2)
    admission, _ = an_admission(limits)
    near = [f"2001:db8:1:2{n:02x}::1" for n in range(3)]
    far = [f"2001:db8:1:{n}00::1" for n in range(3, 9)]
    # Four from one /56, eight from one /48.
    assert [bool(admission.wait_ms(each)) for each in near for _ in (1, 2)] == [False] * 4 + [True] * 2
    assert [bool(admission.wait_ms(each)) for each in far].count(False) == 2
    assert admission.wait_ms("2001:db8:2::1") == 0


def test_nobody_is_told_to_wait_longer_than_the_longest_time() -> None:
    limits = GatewayLimits(connects_per_s=1, connects_burst=1, retry_ms=1_000, retry_ms_max=5_000)
    admission, _ = an_admission(limits)
    assert [admission.wait_ms() for _ in range(9)] == [0, 1_000, 2_000, 3_000, 4_000, 5_000, 5_000, 5_000, 5_000]
    one_a_second = GatewayLimits(address_connects_per_s=1, address_connects_burst=1, retry_ms=100, retry_ms_max=500)
    admission, _ = an_admission(one_a_second)
    assert [admission.wait_ms("192.0.2.1") for _ in range(3)] == [0, 500, 500]


def test_of_too_many_strangers_from_one_address_the_oldest_of_them_makes_room() -> None:
    admission, counters = an_admission(GatewayLimits(address_strangers=2))
    other, *callers = [Newcomer() for _ in range(5)]
    admission.add_caller(other, "192.0.2.9")
    for caller in callers:
        admission.add_caller(caller, "192.0.2.1")
    assert ([each.turned_away for each in (other, *callers)], counters.strangers_dropped) == ([0, 1, 1, 0, 0], 2)
    for caller in (other, *callers):
        admission.remove_caller(caller)
    assert len(admission.callers) == 0


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
