"""How long to wait before the next attempt."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.limits import ClientLimits
from nightmail.client.retries import backoff_ms, delay_ms

LIMITS = ClientLimits()


@given(st.integers(1, 100_000), st.randoms())
def test_a_wait_doubles_from_one_second_to_five_minutes_give_or_take_a_tenth(failures: int, chance: Random) -> None:
    wait = delay_ms(failures, LIMITS, chance)
    plain = min(1_000 * 2 ** min(failures - 1, 20), 300_000)
    assert plain * 0.9 - 1 <= wait <= plain * 1.1 + 1


@given(st.integers(1, 100_000), st.randoms())
def test_a_wait_to_connect_lies_anywhere_below_a_bound_that_doubles(failures: int, chance: Random) -> None:
    assert 0 <= backoff_ms(failures, LIMITS, chance) <= min(500 * 2 ** min(failures - 1, 20), 60_000)
