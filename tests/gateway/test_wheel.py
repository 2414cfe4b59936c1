"""One wheel for all timers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.gateway.wheel import SLOT_MS, Wheel


def test_a_timer_is_called_once_at_its_time_or_a_slot_later() -> None:
    wheel, calls = Wheel(0), list[int]()
    wheel.add(100, calls.append)
    wheel.turn(99)
    assert calls == []
    wheel.turn(100)
    wheel.turn(1_000)
    assert calls == [100]


def test_what_is_overdue_waits_for_the_next_turn() -> None:
    wheel, calls = Wheel(1_000), list[int]()
    wheel.add(0, calls.append)
    wheel.turn(1_000)
    assert calls == []
    wheel.turn(1_000 + SLOT_MS)
    assert calls == [1_000 + SLOT_MS]


def test_a_timer_that_adds_itself_again_is_not_called_in_the_same_slot() -> None:
    wheel, calls = Wheel(0), list[int]()

    def again(now: int) -> None:
        calls.append(now)
        wheel.add(now, again)

    wheel.add(25, again)
    for now in (25, 25, 50):
        wheel.turn(now)
    assert calls == [25, 50]


def test_a_long_pause_calls_everything_that_came_due_in_order() -> None:
    wheel, calls = Wheel(0), list[str]()
    for name, at in (("c", 900), ("a", 100), ("b", 500)):
        wheel.add(at, lambda _, name=name: calls.append(name))
    wheel.turn(10**9)
    assert (calls, len(wheel)) == (["a", "b", "c"], 0)


@given(st.lists(st.integers(0, 5_000)), st.lists(st.integers(1, 300)))
def test_nothing_is_called_early_or_twice_or_forgotten(ats: list[int], steps: list[int]) -> None:
    wheel, now = Wheel(0), 0
    called: dict[int, int] = {}

    def call(now: int, number: int) -> None:
        assert number not in called
        called[number] = now

    for number, at in enumerate(ats):
        wheel.add(at, lambda now, number=number: call(now, number))
    for step in steps:
        now += step
        wheel.turn(now)
    for number, at in enumerate(ats):
        if number in called:
            assert called[number] >= at
        else:
            assert now < at + SLOT_MS
