"""The wall clock is not believed at once when it is far ahead: neither at a start, nor while the server runs."""

from __future__ import annotations

import pytest

from nightmail.engine.clock import BatchClock, ClockLimits
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.limits import DAY_MS
from nightmail.model.records import ClockBelieved

LEAP_MS, START_AHEAD_MS, LASTING_MS = 60_000, 86_400_000, 600_000
NOON = 1_700_000_000_000
BELIEVED, AHEAD, BEHIND = ClockState


class Machine:
    """A wall clock, a pace and a stored time, to be set by hand."""

    def __init__(self, *, wall: int = NOON, stored: int = 0, folder_ms: int = 0) -> None:
        self.wall, self.pace, self.stored = wall, 5_000, stored
        self.told: list[ClockSeen] = []
        self.clock = BatchClock(
            lambda: self.wall, lambda: self.pace, lambda: self.stored, folder_ms, ClockLimits(), self.told.append
        )

    def after(self, ms: int, leap: int = 0) -> int:
        self.wall += ms + leap
        self.pace += ms
        self.clock()
        if believed := self.clock.to_believe():
            self.stored = believed.to  # As the fold does.
        return self.clock()

    @property
    def states(self) -> list[ClockState]:
        return [seen.state for seen in self.told]


def test_the_defaults_are_those_that_the_documentation_names() -> None:
    assert ClockLimits() == ClockLimits(LEAP_MS, START_AHEAD_MS, LASTING_MS)


def test_it_is_the_wall_clock_as_long_as_nothing_leaps() -> None:
    machine = Machine()
    assert machine.after(0) == NOON
    assert machine.after(DAY_MS) == machine.wall
    for leap in (LEAP_MS, LEAP_MS, -DAY_MS, 7):
        assert machine.after(50, leap) == machine.wall
    assert machine.told == []


def test_a_leap_that_is_put_right_in_time_is_never_believed() -> None:
    machine = Machine()
    machine.after(0)
    assert machine.after(50, DAY_MS) == machine.wall - DAY_MS
    assert machine.after(LASTING_MS - 1) == machine.wall - DAY_MS
    assert machine.after(50, -DAY_MS) == machine.wall
    began, ended = NOON + 50, NOON + LASTING_MS + 99
    assert machine.told == [ClockSeen(AHEAD, began + DAY_MS, began), ClockSeen(BELIEVED, ended, ended)]


def test_a_leap_that_lasts_is_believed() -> None:
    machine = Machine()
    machine.after(0)
    machine.after(50, LEAP_MS + 1)
    assert machine.after(LASTING_MS - 1) == machine.wall - LEAP_MS - 1
    assert machine.after(1) == machine.wall
    machine.after(50, DAY_MS)
    assert machine.states == [AHEAD, BELIEVED, AHEAD]


@pytest.mark.parametrize("again", [30 * DAY_MS, -DAY_MS // 2])
def test_a_clock_that_leaps_once_more_must_last_from_then_on(again: int) -> None:
    machine = Machine()
    machine.after(0)
    right = machine.after(50, DAY_MS)
    for _ in range(2):
        right += LASTING_MS - 50
        assert machine.after(LASTING_MS - 50, again) == right
        again = -again
    right += LASTING_MS
    assert machine.after(LASTING_MS) == machine.wall == right + DAY_MS
    assert machine.states == [AHEAD, BELIEVED]


def test_a_clock_that_was_put_right_may_leap_again_and_is_told_again() -> None:
    machine = Machine()
    machine.after(0)
    for _ in range(2):
        machine.after(50, DAY_MS)
        machine.after(50, -DAY_MS)
    assert machine.states == [AHEAD, BELIEVED] * 2


# --- at a start -------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [{"stored": NOON}, {"folder_ms": NOON}, {"stored": NOON, "folder_ms": NOON - 9}])
def test_a_clock_that_is_far_ahead_at_the_start_is_doubted_and_time_goes_on_from_what_is_stored(
    known: dict[str, int],
) -> None:
    machine = Machine(wall=NOON + 31 * DAY_MS, **known)
    # Something may be filed under the stored time: what is filed during the doubt is later.
    assert (machine.after(0), machine.after(5_000)) == (NOON + ("stored" in known), NOON + 5_000)
    assert machine.after(0, -31 * DAY_MS) == NOON + 5_000
    assert machine.states == [AHEAD, BELIEVED]


def test_a_server_that_was_off_for_a_day_goes_by_its_clock_at_once() -> None:
    machine = Machine(wall=NOON + START_AHEAD_MS, stored=NOON)
    assert machine.after(0) == NOON + START_AHEAD_MS
    assert machine.told == []


def test_a_server_that_was_off_for_a_month_believes_its_clock_after_ten_minutes() -> None:
    machine = Machine(wall=NOON + 31 * DAY_MS, stored=NOON)
    machine.after(0)
    assert machine.after(LASTING_MS - 1) == NOON + LASTING_MS - 1
    assert machine.after(1) == NOON + 31 * DAY_MS + LASTING_MS
    assert machine.states == [AHEAD, BELIEVED]


def test_what_a_start_allows_for_is_not_allowed_for_later() -> None:
    machine = Machine(wall=NOON + 7, stored=NOON)
    machine.after(0)
    assert machine.after(0, LEAP_MS + 1) == NOON + 7
    assert machine.states == [AHEAD]


def test_a_machine_that_boots_in_1970_is_believed_as_soon_as_it_knows_the_time() -> None:
    machine = Machine(wall=0, stored=NOON)
    machine.after(5_000)
    assert machine.after(0, NOON + 90_000) == NOON + 95_000
    assert machine.states == [BEHIND, BELIEVED]


def test_a_new_folder_knows_no_time_to_compare_with() -> None:
    machine = Machine()
    assert (machine.after(0), machine.told) == (NOON, [])


# --- behind -----------------------------------------------------------------------------------


def test_a_clock_that_is_far_behind_what_is_stored_is_told_until_the_time_was_set_back() -> None:
    machine = Machine(stored=NOON + DAY_MS)
    assert machine.after(0) == NOON
    assert machine.told == [ClockSeen(BEHIND, NOON, NOON + DAY_MS)]
    machine.stored = NOON
    machine.after(50)
    assert machine.told[1:] == [ClockSeen(BELIEVED, NOON + 50, NOON + 50)]


def test_a_clock_that_was_set_back_a_little_stands_still_until_it_has_caught_up() -> None:
    machine = Machine()
    assert [machine.after(ms, leap) for ms, leap in ((0, 0), (10, -LEAP_MS), (LEAP_MS, 0))] == [NOON, NOON, NOON + 10]


def test_a_clock_is_believed_by_a_record_that_says_since_when_it_was_doubted() -> None:
    machine = Machine()
    machine.after(0)
    machine.wall += DAY_MS
    machine.clock()
    machine.wall, machine.pace = machine.wall + LASTING_MS, machine.pace + LASTING_MS
    assert machine.clock.to_believe() == ClockBelieved(NOON - 1, NOON + DAY_MS + LASTING_MS)
    assert machine.clock() == NOON + LASTING_MS
    machine.clock.believe()
    assert (machine.clock(), machine.clock.to_believe()) == (machine.wall, None)
