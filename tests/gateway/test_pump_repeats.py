"""Offering again what was not acknowledged, on quick lines and slow ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import pytest

from nightmail.gateway.limits import GatewayLimits
from nightmail.model.words import Lane
from nightmail.wire.items import Entries, FromServer
from tests.gateway.rig import (
    TABLET,
    Town,
    a_town,
    numbers_of,
)

NORMAL, HIGH = Lane.NORMAL, Lane.HIGH
T = TypeVar("T")


# --- offering again ----------------------------------------------------------------------------


def test_an_entry_is_offered_again_after_100_ms_and_after_500_more_then_the_device_counts_as_offline() -> None:
    town = a_town()
    ben = town.connect()
    seat = town.registry.seat_of(TABLET, town.pace)
    town.write(3)
    assert ben.numbers() == [1, 2, 3]
    repeats: list[tuple[int, list[int]]] = []
    start = town.pace
    while town.pace < start + 3_000:
        town.wait(20)
        if numbers := ben.numbers():
            repeats.append((town.pace - start, numbers))
    assert repeats == [(100, [1]), (600, [1])]
    assert (seat is not None, town.registry.seat_of(TABLET, town.pace)) == (True, None)
    assert (ben.link.closed, town.gateway.counters.suspected, town.gateway.counters.repeated) == (None, 1, 2)


def test_a_late_ack_restores_the_device() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    town.wait(3_000)
    assert town.registry.seat_of(TABLET, town.pace) is None
    ben.ack(3)
    ben.take()
    assert town.registry.seat_of(TABLET, town.pace) == ben.session.seat
    town.write(1, first=4)
    assert ben.numbers() == [4]
    town.wait(200)
    assert ben.numbers() == [4]


def test_a_late_ack_of_a_part_starts_the_clock_anew_for_the_rest() -> None:
    town = a_town()
    ben = town.connect()
    for n in (1, 2, 3):
        town.write(1, first=n)
        town.turn()
    town.wait(3_000)
    ben.link.take()
    ben.ack(1)
    town.turn()
    town.wait(80)
    assert ben.numbers() == []
    town.wait(60)
    assert ben.numbers() == [2]
    assert town.gateway.counters.suspected == 1


def test_nothing_is_repeated_while_the_first_offer_is_still_on_its_way() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.link.is_stalled = True
    town.wait(560)
    assert (ben.numbers(), town.gateway.counters.repeated) == ([], 0)
    ben.link.is_stalled = False
    town.wait(60)
    assert ben.numbers() == [1]


def test_a_line_that_takes_nothing_any_more_counts_as_offline_without_a_repeat() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.link.is_stalled = True
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected, town.gateway.counters.repeated) == ([], 1, 0)


def test_only_the_oldest_entry_is_repeated_and_of_the_high_lane_first() -> None:
    town = a_town()
    town.write(3)
    town.write(3, lane=HIGH)
    ben = town.connect()
    town.wait(120)
    assert [(item.lane, item.first, len(item.entries)) for item in ben.take() if isinstance(item, Entries)] == [
        (HIGH, 1, 1)
    ]


def test_the_clock_does_not_run_while_the_device_catches_up() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(25)
    ben = town.connect()
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected) == ([], 0)


def test_the_clock_begins_when_the_device_has_caught_up() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(15)
    ben = town.connect()
    town.wait(5_000)
    ben.ack(5)
    assert ben.numbers() == [11, 12, 13, 14, 15]
    town.wait(80)
    assert ben.numbers() == []


def test_the_clock_does_not_run_while_the_window_is_closed_and_begins_when_it_opens() -> None:
    town = a_town(GatewayLimits(credit_entries=2))
    ben = town.connect()
    town.write(2)
    ben.take()
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected) == ([], 0)
    ben.ack(1)
    town.wait(80)
    assert ben.numbers() == []
    town.wait(60)
    assert ben.numbers() == [2]


def test_a_device_that_reads_and_acknowledges_is_never_repeated_to() -> None:
    town = a_town()
    ben = town.connect()
    for n in range(1, 51):
        town.write(1, first=n)
        assert ben.numbers() == [n]
        town.wait(80)
        ben.ack(n)
    town.wait(2_000)
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


# --- a slow line -------------------------------------------------------------------------------


class SlowLine:
    """Ben's phone behind a line that takes `ms` each way, and acknowledges whatever arrives."""

    def __init__(self, town: Town, ms: int) -> None:
        self.town, self.ms = town, ms
        self.ben = town.stranger()
        self.held = False
        """Nothing gets through, in either direction; what is sent meanwhile comes later."""
        self.got: list[int] = []
        self._to_phone: deque[tuple[int, list[FromServer]]] = deque()
        self._to_server: deque[tuple[int, int]] = deque()
        self.ben.link.on_frame = lambda items: self._to_phone.append((town.pace + self.ms, items))
        town.wait(2 * ms)
        self.ben.hello()

    def wait(self, ms: int, jitter: Callable[[], int] = lambda: 0) -> None:
        town, end = self.town, self.town.pace + ms
        while town.pace < end:
            town.wait(20)
            # Sent, and not confirmed by the other side's machine.
            self.ben.link.is_stalled = any(town.pace < at + self.ms for at, _ in self._to_phone)
            while not self.held and self._to_phone and self._to_phone[0][0] <= town.pace:
                _, items = self._to_phone.popleft()
                if numbers := numbers_of(items):
                    self.got += numbers
                    self._to_server.append((town.pace + self.ms + jitter(), numbers[-1]))
            while not self.held and self._to_server and self._to_server[0][0] <= town.pace:
                self.ben.ack(self._to_server.popleft()[1])


def test_on_a_line_of_400_ms_nothing_is_repeated_and_the_device_is_never_suspected() -> None:
    town = a_town()
    line = SlowLine(town, 200)
    for n in range(1, 101):
        town.write(1, first=n)
        line.wait(60)
    line.wait(2_000)
    assert line.got == list(range(1, 101))
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


@pytest.mark.parametrize("jitter_ms", [0, 20, 60, 80])
@pytest.mark.parametrize("every_ms", [60, 1_000])
def test_a_line_whose_delay_changes_by_less_than_the_shortest_wait_is_not_taken_for_a_stall(
    jitter_ms: int, every_ms: int
) -> None:
    town = a_town()
    line = SlowLine(town, 200)
    for n in range(1, 101):
        town.write(1, first=n)
        # Long the same, then for once late: the mean deviation has shrunk by then.
        line.wait(every_ms, lambda n=n: jitter_ms if n % 20 == 0 else 0)
    line.wait(3_000)
    assert line.got == list(range(1, 101))
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


def test_a_line_that_becomes_slow_is_known_as_slow_after_a_few_repeats() -> None:
    town = a_town()
    line = SlowLine(town, 20)
    for n in range(1, 51):
        if n == 11:
            line.ms = 300
        town.write(1, first=n)
        line.wait(2_000)
    assert (town.gateway.counters.repeated <= 5, town.gateway.counters.suspected) == (True, 0)


def test_each_stall_of_a_slow_line_repeats_one_entry_at_most_and_the_device_comes_back_once() -> None:
    town = a_town()
    line = SlowLine(town, 200)
    n = 0
    for _ in range(5):
        line.held = True
        for _ in range(10):
            n += 1
            town.write(1, first=n)
            line.wait(60)
        line.wait(5_000)
        line.held = False
        line.wait(3_000)
    repeated = len(line.got) - len(set(line.got))
    assert sorted(set(line.got)) == list(range(1, n + 1))
    assert (repeated <= 5, town.gateway.counters.suspected <= 5) == (True, True)
    assert town.registry.seat_of(TABLET, town.pace) == line.ben.session.seat
