"""The clock that is not believed at once when it leaps ahead."""

from __future__ import annotations

import pytest

from nightmail.engine.clock import LASTING_MS, LEAP_MS, BatchClock
from nightmail.model.limits import DAY_MS


class Machine:
    """A wall clock and a pace, to be set by hand."""

    def __init__(self) -> None:
        self.wall, self.pace = 1_000_000, 5_000
        self.told: list[tuple[int, bool]] = []
        self.clock = BatchClock(lambda: self.wall, lambda: self.pace, lambda *leap: self.told.append(leap))

    def after(self, ms: int, leap: int = 0) -> int:
        self.wall += ms + leap
        self.pace += ms
        return self.clock()


def test_it_is_the_wall_clock_as_long_as_nothing_leaps() -> None:
    machine = Machine()
    assert machine.after(0) == 1_000_000
    assert machine.after(DAY_MS) == machine.wall
    for leap in (LEAP_MS, LEAP_MS, -DAY_MS, 7):
        assert machine.after(50, leap) == machine.wall
    assert machine.told == []


def test_a_leap_that_is_put_right_within_a_minute_is_never_heard() -> None:
    machine = Machine()
    assert machine.after(50, DAY_MS) == machine.wall - DAY_MS
    assert machine.after(LASTING_MS - 1) == machine.wall - DAY_MS
    assert machine.after(50, -DAY_MS) == machine.wall
    assert machine.told == [(DAY_MS, False)]


def test_a_leap_that_lasts_a_minute_is_believed() -> None:
    machine = Machine()
    machine.after(50, LEAP_MS + 1)
    assert machine.after(LASTING_MS - 1) == machine.wall - LEAP_MS - 1
    assert machine.after(1) == machine.wall
    assert machine.told == [(LEAP_MS + 1, False), (LEAP_MS + 1, True)]
    machine.after(50, DAY_MS)
    assert machine.told[2:] == [(DAY_MS, False)]


@pytest.mark.parametrize("again", [30 * DAY_MS, -DAY_MS // 2])
def test_a_clock_that_leaps_once_more_must_last_anew(again: int) -> None:
    machine = Machine()
    right = machine.after(50, DAY_MS)
    for _ in range(2):
        right += LASTING_MS - 50
        assert machine.after(LASTING_MS - 50, again) == right
        again = -again
    right += LASTING_MS
    assert machine.after(LASTING_MS) == machine.wall == right + DAY_MS
    assert machine.told == [(DAY_MS, False), (DAY_MS, True)]


def test_a_clock_that_was_put_right_may_leap_again_and_is_told_again() -> None:
    machine = Machine()
    for _ in range(2):
        machine.after(50, DAY_MS)
        machine.after(50, -DAY_MS)
    assert machine.told == [(DAY_MS, False)] * 2
