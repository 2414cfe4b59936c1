from __future__ import annotations

from nightmail.core.retries import CALLS_OUT, WEBHOOKS, RetryPolicy, delay_ms, longest_ms


def test_a_webhook_is_called_again_five_times_and_later_each_time() -> None:
    delays = [delay_ms(WEBHOOKS, "a message", tries) for tries in range(1, 7)]
    assert delays[5] is None
    for n, delay in enumerate(delays[:5]):
        assert delay is not None
        assert 1_000 << n <= delay <= 1_100 << n


def test_whatever_else_leaves_the_system_is_tried_again_three_times() -> None:
    assert [delay_ms(CALLS_OUT, "a push", tries) is None for tries in range(1, 5)] == [False, False, False, True]


def test_no_delay_is_longer_than_a_minute_and_a_tenth() -> None:
    patient = type(WEBHOOKS)(retries=20)
    assert all(60_000 <= (delay_ms(patient, "x", tries) or 0) <= 66_000 for tries in range(7, 21))


def test_the_jitter_follows_from_what_is_tried_and_for_which_time() -> None:
    assert delay_ms(WEBHOOKS, "one", 3) == delay_ms(WEBHOOKS, "one", 3)
    assert len({delay_ms(WEBHOOKS, f"message {n}", 3) for n in range(50)}) > 25


def test_no_delay_is_longer_than_the_longest() -> None:
    policy = RetryPolicy(retries=20)
    delays = [delay_ms(policy, f"item {n}", 20) or 0 for n in range(100)]
    assert longest_ms(policy) == 66_000
    assert 60_000 <= max(delays) <= 66_000
