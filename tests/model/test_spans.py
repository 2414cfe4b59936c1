from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.spans import Spans, add_span, contains, numbers, pairs, spans_of

interval = st.tuples(st.integers(0, 60), st.integers(0, 8)).map(lambda each: (each[0], sum(each)))


def merged(intervals: list[tuple[int, int]]) -> Spans:
    spans: Spans = []
    for low, high in intervals:
        add_span(spans, low, high)
    return spans


def members(intervals: list[tuple[int, int]]) -> set[int]:
    return {number for low, high in intervals for number in range(low, high + 1)}


def slowly(wanted: set[int]) -> Spans:
    """The same, made the slow way."""
    spans: Spans = []
    for number in sorted(wanted):
        if spans and spans[-1] == number - 1:
            spans[-1] = number
        else:
            spans += (number, number)
    return spans


def test_touching_intervals_become_one() -> None:
    assert merged([(1, 3), (4, 6)]) == [1, 6]
    assert merged([(4, 6), (1, 3)]) == [1, 6]


def test_an_interval_that_fills_a_hole_joins_both_sides() -> None:
    assert merged([(1, 2), (5, 6), (3, 4)]) == [1, 6]


def test_an_interval_that_covers_others_takes_their_place() -> None:
    assert merged([(2, 3), (5, 6), (9, 9), (1, 7)]) == [1, 7, 9, 9]


def test_intervals_that_do_not_touch_stay_apart() -> None:
    assert merged([(5, 6), (1, 2), (8, 8)]) == [1, 2, 5, 6, 8, 8]


@given(st.lists(interval))
def test_a_set_of_numbers_is_the_same_in_whatever_order_it_grew(intervals: list[tuple[int, int]]) -> None:
    assert merged(intervals) == slowly(members(intervals))


@given(st.lists(interval))
def test_exactly_its_numbers_are_in_it(intervals: list[tuple[int, int]]) -> None:
    spans, wanted = merged(intervals), members(intervals)
    assert list(numbers(spans)) == sorted(wanted)
    assert {number for number in range(-2, 80) if contains(spans, number)} == wanted
    assert members(list(pairs(spans))) == wanted


@given(st.lists(st.integers(0, 40)))
def test_single_numbers_make_a_set_too(singles: list[int]) -> None:
    assert spans_of(singles) == slowly(set(singles))


def test_the_empty_set_is_empty() -> None:
    assert (spans_of([]), list(pairs([])), list(numbers([])), contains([], 0)) == ([], [], [], False)
