"""How long to wait before the next attempt, and when it is made."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.limits import ClientLimits
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry, reconnect_ms, retry_ms
from nightmail.client.store.memory import MemoryStore
from nightmail.e2ee.chance import SYSTEM
from tests.client.script import ME, STEADY

LIMITS = ClientLimits()
NO_SIGNALS: Any = None
"""A retry tells no other part anything."""


@given(st.integers(1, 100_000), st.randoms())
def test_a_wait_doubles_from_one_second_to_five_minutes_give_or_take_a_tenth(failures: int, chance: Random) -> None:
    wait = retry_ms(failures, LIMITS, chance)
    plain = min(1_000 * 2 ** min(failures - 1, 20), 300_000)
    assert plain * 0.9 - 1 <= wait <= plain * 1.1 + 1


@given(st.integers(1, 100_000), st.randoms())
def test_a_wait_to_connect_lies_anywhere_below_a_bound_that_doubles(failures: int, chance: Random) -> None:
    assert 0 <= reconnect_ms(failures, LIMITS, chance) <= min(500 * 2 ** min(failures - 1, 20), 60_000)


def a_retry() -> tuple[Context, Retry, list[int]]:
    context = Context(MemoryStore(), ME, STEADY, Random(1), SYSTEM, NO_SIGNALS)
    made: list[int] = []
    return context, Retry(context, lambda: made.append(context.now)), made


def test_attempts_come_later_and_later_until_one_succeeds_and_none_without_a_connection() -> None:
    context, retry, made = a_retry()
    for wait in (1_000, 2_000, 4_000):
        retry.later()
        assert retry.due == context.now + wait
        context.now += wait - 1
        retry.tick()
        assert made[-1:] != [context.now]
        context.now += 1
        retry.tick()
        assert (made[-1], retry.due) == (context.now, None)
    retry.reset()
    retry.later()
    assert retry.due == context.now + 1_000
    retry.cancel()
    context.now += 10_000
    retry.tick()
    assert len(made) == 3


def test_a_failure_that_is_only_counted_makes_the_next_wait_longer() -> None:
    context, retry, _ = a_retry()
    retry.count()
    assert (retry.failures, retry.due) == (1, None)
    retry.later()
    assert retry.due == context.now + 2_000


def test_an_attempt_can_be_planned_without_a_failure() -> None:
    context, retry, made = a_retry()
    retry.set(context.now + 5)
    context.now += 5
    retry.tick()
    assert (made, retry.failures) == ([context.now], 0)


def test_a_timer_keeps_the_earlier_of_two_times_and_forgets_it_with_the_connection() -> None:
    context, timer, made = a_retry()
    timer.set_earlier(context.now + 7)
    timer.set_earlier(context.now + 5)
    timer.set_earlier(context.now + 9)
    assert timer.deadline() == context.now + 5
    timer.lost()
    context.now += 10
    timer.tick()
    assert (made, timer.deadline()) == ([], None)
