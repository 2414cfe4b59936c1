"""One sign of typing in so long, for each account and conversation."""

from __future__ import annotations

from nightmail.gateway.typing_limits import TypingLimits


def test_one_is_passed_in_each_interval_for_each_account_and_conversation() -> None:
    limits = TypingLimits(3_000)
    said = [(1, 2, 0), (1, 2, 1), (1, 3, 1), (2, 1, 1), (1, 2, 2_999), (1, 2, 3_000), (1, 2, 5_999)]
    assert [limits.take(*each) for each in said] == [True, False, True, True, False, True, False]


def test_only_what_was_passed_in_the_last_interval_is_remembered() -> None:
    limits = TypingLimits(3_000)
    for n in range(10_000):
        limits.take(1, n, n)
    assert len(limits) == 3_000
