from __future__ import annotations

import pytest

from nightmail.api.problems import Problem
from nightmail.api.rates import Rate


class Clock:
    now = 5_000

    def __call__(self) -> int:
        return self.now


def refused(rate: Rate, key: str) -> int:
    """For how many ms; 0: not at all. Counts one if not."""
    try:
        rate.take(key)
    except Problem as problem:
        return problem.fields["retry_ms"]
    return 0


def test_so_many_at_once_and_as_many_over_time_for_each() -> None:
    clock = Clock()
    rate = Rate(3, 60_000, 10, clock)
    assert [refused(rate, "a") for _ in range(4)] == [0, 0, 0, 20_000]
    assert refused(rate, "b") == 0
    clock.now += 20_000
    assert [refused(rate, "a") for _ in range(2)] == [0, 20_000]
    clock.now += 60_000
    assert [refused(rate, "a") for _ in range(4)] == [0, 0, 0, 20_000]


def test_looking_counts_nothing() -> None:
    rate = Rate(1, 60_000, 10, Clock())
    for _ in range(3):
        rate.check("a")
    rate.take("a")
    with pytest.raises(Problem):
        rate.check("a")


def test_no_limit_and_a_bounded_memory() -> None:
    clock = Clock()
    assert [refused(Rate(0, 60_000, 10, clock), "a") for _ in range(100)] == [0] * 100
    rate = Rate(1, 60_000, 2, clock)
    for key in "abc":
        assert refused(rate, key) == 0
    assert [refused(rate, key) > 0 for key in "cb"] == [True, True]
    assert refused(rate, "a") == 0, "the one that was quiet longest was forgotten"


def test_who_used_least_is_forgotten_first() -> None:
    rate = Rate(3, 60_000, 20, Clock())
    assert [refused(rate, "a") for _ in range(3)] == [0, 0, 0]
    for n in range(100):
        rate.take(f"other {n}")
    assert refused(rate, "a") > 0


def test_who_may_do_nothing_more_is_not_forgotten_however_many_others_there_are() -> None:
    clock = Clock()
    rate = Rate(1, 60_000, 20, clock, stern=True)
    for n in range(100):
        rate.take(f"{n}")
    assert all(refused(rate, f"{n}") > 0 for n in range(100))
    clock.now += 60_000
    for n in range(100, 200):
        rate.take(f"{n}")
    assert len(rate._used) <= 200
    assert refused(rate, "0") == 0
