"""Quantiles of what was counted since the last look."""

from __future__ import annotations

from math import isnan

from nightmail.server.histogram import Histogram
from nightmail.server.quantiles import Recent, quantile

BOUNDS = (10, 20, 40)


def test_a_quantile_lies_inside_its_bucket_and_never_above_the_highest_bound() -> None:
    assert quantile(BOUNDS, [4, 0, 0, 0], 0.5) == 5
    assert quantile(BOUNDS, [2, 2, 0, 0], 0.75) == 15
    assert quantile(BOUNDS, [0, 0, 4, 0], 1) == 40
    assert quantile(BOUNDS, [0, 0, 0, 9], 0.99) == 40
    assert isnan(quantile(BOUNDS, [0, 0, 0, 0], 0.5))


def test_only_what_is_new_is_taken_each_time() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add(5)
    recent = Recent(histogram)
    assert recent.take() == [0, 0, 0, 0]
    histogram.add(5)
    histogram.add(50)
    assert recent.take() == [1, 0, 0, 1]
    assert recent.take() == [0, 0, 0, 0]
