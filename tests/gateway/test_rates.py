"""Buckets that fill over time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.gateway.rates import Bucket, Shares


def test_a_full_bucket_gives_its_burst_at_once_and_no_more() -> None:
    bucket = Bucket(per_s=10, burst=3, now=0)
    assert [bucket.take(0) for _ in range(5)] == [True, True, True, False, False]


def test_it_fills_with_time_and_never_above_its_burst() -> None:
    bucket = Bucket(per_s=10, burst=3, now=0)
    assert bucket.take(0, 3)
    assert [bucket.take(99), bucket.take(100), bucket.take(150)] == [False, True, False]
    assert [bucket.take(10**9) for _ in range(4)] == [True, True, True, False]


def test_what_is_not_there_whole_is_not_taken_in_part() -> None:
    bucket = Bucket(per_s=10, burst=5, now=0)
    assert not bucket.take(0, 6)
    assert bucket.take(0, 5)


def test_time_that_goes_back_gives_nothing() -> None:
    bucket = Bucket(per_s=1_000, burst=1, now=1_000)
    assert bucket.take(1_000)
    assert not bucket.take(0)
    assert not bucket.take(1_000)


def test_whoever_waits_as_long_as_told_is_served() -> None:
    bucket = Bucket(per_s=3, burst=2, now=0)
    assert bucket.take(0, 2)
    assert not bucket.take(5)
    assert bucket.take(5 + bucket.wait_ms())


def test_what_is_spent_beyond_what_is_there_has_to_come_back_first() -> None:
    bucket = Bucket(per_s=100, burst=100, now=0)
    bucket.spend(150)
    assert (bucket.level(0), bucket.level(500), bucket.level(600), bucket.level(10_000)) == (-50, 0, 10, 100)


@given(st.integers(1, 100), st.integers(1, 100), st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 10))))
def test_never_more_is_taken_than_the_burst_and_what_came_since(
    per_s: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    bucket, now, taken = Bucket(per_s, burst, 0), 0, 0
    for waits, amount in steps:
        now += waits
        if bucket.take(now, amount):
            taken += amount
        assert taken <= burst + now * per_s / 1_000 + 1e-6


def test_so_many_are_counted_and_one_that_used_much_is_not_forgotten() -> None:
    shares = Shares(per_s=0.001, burst=3, most=100)
    assert [shares.wait_ms("busy", 0) for _ in range(3)] == [0, 0, 0]
    for number in range(10_000):
        assert shares.wait_ms(number, 0) == 0
    assert len(shares) == 100
    assert shares.wait_ms("busy", 0) > 0


def test_a_newcomer_takes_the_place_of_one_and_never_of_many_at_once() -> None:
    shares = Shares(per_s=1, burst=3, most=1_000)
    for number in range(1_000):
        shares.bucket(number, 0)
    lengths: set[int] = set()
    for number in range(1_000, 3_000):
        shares.bucket(number, 0)
        lengths.add(len(shares))
    assert lengths == {1_000}


def test_one_that_is_full_again_is_forgotten_and_one_that_is_not_is_kept() -> None:
    shares = Shares(1, 2, 100)
    shares.wait_ms("soon full", 0)
    shares.wait_ms("empty", 0, 2)
    shares.forget_full(1_000)
    assert (len(shares), shares.wait_ms("empty", 1_000, 2)) == (1, 1_001)
