"""Windows, shares and quantiles, as Prometheus understands them."""

from __future__ import annotations

import pytest

from nightmail.server.alerts.conditions import Growth, History, Level, Quantile, Share, duration, is_met

MINUTE_MS = 60_000


def a_history(*samples: tuple[int, dict[str, float]]) -> History:
    history = History(10 * MINUTE_MS)
    for at, values in samples:
        history.add(at, values)
    return history


def test_growth_counts_from_the_last_sample_before_the_window() -> None:
    history = a_history((0, {"x": 1}), (4 * MINUTE_MS, {"x": 5}), (9 * MINUTE_MS, {"x": 7}))
    assert [Growth("x", 0, window_s).value(history) for window_s in (60, 300, 540, 600)] == [2, 2, 6, 6]


def test_growth_of_a_series_that_appears_is_all_of_it() -> None:
    assert Growth("x", 0, 300).value(a_history((0, {}), (1_000, {"x": 3}))) == 3


def test_what_was_never_sampled_has_no_value_and_meets_nothing() -> None:
    history = a_history((0, {"y": 1}))
    for condition in (Level("x", "<", 5), Growth("x", 0, 300)):
        value = condition.value(history)
        assert (value, is_met(condition, value)) == (None, False)


def test_a_history_keeps_what_its_window_begins_with_and_nothing_older() -> None:
    history = a_history(*((minute * MINUTE_MS, {"x": float(minute)}) for minute in range(31)))
    assert history.increase("x", 600) == 10
    assert history.increase("x", 6_000) == 10


def test_a_share_of_too_few_is_not_judged() -> None:
    condition = Share(("bad",), ("good", "bad"), ">", 0.01, 600, 1_000)
    few = a_history((0, {"good": 0, "bad": 0}), (1_000, {"good": 500, "bad": 499}))
    many = a_history((0, {"good": 0, "bad": 0}), (1_000, {"good": 980, "bad": 20}))
    assert (condition.value(few), condition.value(many)) == (None, 0.02)


@pytest.mark.parametrize(
    ("slow", "value"),
    [(0, 0.0495), (10, 0.1), (20, 0.2 - 0.1 / 2), (1_000, 0.199)],
)  # fmt: skip
def test_a_quantile_lies_inside_its_bucket(slow: int, value: float) -> None:
    """One thousand, of which `slow` took between 0.1 and 0.2 s, and the others up to 0.05 s."""
    condition = Quantile("x", ("0.05", "0.1", "0.2", "+Inf"), 0.99, 0.1, 300, 100)
    quick = 1_000.0 - slow
    begin = dict.fromkeys(condition.series(), 0.0)
    end = {
        "x_count": 1_000.0, 'x_bucket{le="0.05"}': quick, 'x_bucket{le="0.1"}': quick, 'x_bucket{le="0.2"}': 1_000.0,
        'x_bucket{le="+Inf"}': 1_000.0,
    }  # fmt: skip
    found = condition.value(a_history((0, begin), (1_000, end)))
    assert found == pytest.approx(value if slow != 10 else 0.05)  # pyright: ignore[reportUnknownMemberType]


def test_durations_are_written_as_prometheus_reads_them() -> None:
    assert [duration(seconds) for seconds in (0, 15, 60, 90, 600, 3_600, 5_400)] == [
        "0s", "15s", "1m", "90s", "10m", "1h", "90m",
    ]  # fmt: skip
