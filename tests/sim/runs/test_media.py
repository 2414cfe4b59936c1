from __future__ import annotations

import pytest

from sim.planted.media import BUGS
from sim.planted.tools import Bug
from sim.runs.media import Broken, run


def test_rows_and_bytes_stay_in_step_while_the_process_dies_at_any_step() -> None:
    for seed in range(1, 6):
        run(seed)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if "media" in bug.suites], ids=lambda bug: bug.name)
def test_the_judge_sees_each_bug_that_is_planted(bug: Bug) -> None:
    def some_worlds() -> None:
        for seed in range(1, 21):
            run(seed)

    with bug.plant(), pytest.raises((Broken, ValueError, AssertionError)):
        some_worlds()
