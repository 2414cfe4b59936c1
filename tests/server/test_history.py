"""Figures over time: bounded, in order, and merged without what was not measured."""

from __future__ import annotations

from math import isnan, nan

from nightmail.server.history import MINUTES, SECONDS, Column, FigureHistory, Merge, Ring, SampleSpan, thinned

RATE, WORST = Column("rate", Merge.MEAN), Column("worst", Merge.HIGHEST)


def test_a_ring_keeps_the_newest_in_their_order_and_brings_those_after_a_number() -> None:
    ring = Ring(1, 4)
    assert ring.after(0) == SampleSpan(0, [], [[]])
    for n in range(1, 4):
        ring.add(n * 1000, [n])
    assert ring.after(0) == SampleSpan(3, [1000, 2000, 3000], [[1, 2, 3]])
    for n in range(4, 7):
        ring.add(n * 1000, [n])
    assert ring.after(0) == SampleSpan(6, [3000, 4000, 5000, 6000], [[3, 4, 5, 6]])
    assert ring.after(4) == SampleSpan(6, [5000, 6000], [[5, 6]])
    assert ring.after(6) == ring.after(99) == SampleSpan(6, [], [[]])


def test_every_cut_of_a_ring_is_what_a_list_would_give() -> None:
    ring, added = Ring(1, 5), list[float]()
    for n in range(1, 14):
        ring.add(n, [n])
        added.append(n)
        for after in range(n + 2):
            assert ring.after(after).columns == [
                added[-5:][max(0, len(added[-5:]) - (n - after)) :] if after < n else []
            ]


def test_seconds_become_minutes_and_neither_grows_without_end() -> None:
    history = FigureHistory((RATE, WORST))
    for second in range(61):
        history.add(second * 1000, 5_000 + second * 1000, (second, second), dict)
    assert history.minutes.after(0) == SampleSpan(1, [60_000], [[30], [60]])
    for second in range(SECONDS):
        history.add(second, 100_000 + second, (1, 1), dict)
    assert len(history.seconds.after(0).times) == SECONDS
    assert MINUTES == 7 * 24 * 60


def test_what_a_minute_measured_itself_is_not_merged_from_its_seconds() -> None:
    history = FigureHistory((RATE, WORST))
    for second in range(61):
        history.add(second * 1000, 1 + second * 1000, (2, second), lambda: {"worst": 7.0})
    assert history.minutes.after(0).columns == [[2], [7]]


def test_thinning_keeps_the_newest_whole_and_leaves_out_what_was_not_measured() -> None:
    samples = SampleSpan(5, [1, 2, 3, 4, 5], [[9, 1, nan, 3, 5], [1, nan, nan, 8, 2]])
    assert thinned((RATE, WORST), samples, 1) is samples
    assert thinned((RATE, WORST), samples, 2) == SampleSpan(5, [1, 3, 5], [[9, 1, 4], [1, *thin_nan(samples), 8]])


def thin_nan(samples: SampleSpan) -> list[float]:
    """The one cut in which nothing was measured; NaN equals nothing but this very object."""
    found = thinned((RATE, WORST), samples, 2).columns[1][1]
    assert isnan(found)
    return [nan]
