from __future__ import annotations

import pytest

from nightmail.gateway import visibility
from sim.planted.tools import edit
from sim.runs.presence import Broken, run


def test_everybody_is_told_what_is_true_and_may_be_seen_and_no_more_than_once_a_second() -> None:
    for seed in range(1, 11):
        run(seed)


def test_the_judge_sees_somebody_who_hides_and_sees() -> None:
    sees_all = edit(
        visibility.may_see, "Audience.NOBODY in (audience, watcher_audience)", "audience is Audience.NOBODY"
    )
    with sees_all(), pytest.raises(Broken):
        run(1)
