from __future__ import annotations

import pytest

from nightmail.core import due
from sim.planted.tools import edit
from sim.runs.clocks import Broken, run


def test_nothing_ends_before_its_time_however_often_a_clock_goes_wrong_and_is_set_back() -> None:
    for seed in range(1, 31):
        run(seed)


def test_the_judge_sees_a_message_that_ends_early() -> None:
    believes_moments = edit(due.too_early_until, "if _leapt_ms(state, planned) else", "if False else")
    with believes_moments(), pytest.raises(Broken, match="too early"):
        run(1)


def test_the_judge_sees_messages_that_wait_for_ever() -> None:
    with edit(due.is_due, "<= max(now, shard.now)", "<= min(0, shard.now)")(), pytest.raises(Broken, match="for ever"):
        run(1)
