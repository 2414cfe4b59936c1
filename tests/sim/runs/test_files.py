"""A few worlds of files; and one in which a bug shows."""

from __future__ import annotations

import pytest

from sim.planted.files import BUGS
from sim.runs.files import Broken, run


@pytest.mark.parametrize("seed", range(1, 6))
def test_files_arrive_whatever_dies_breaks_or_lies(seed: int) -> None:
    run(seed)


def test_a_planted_bug_breaks_a_world() -> None:
    bug = next(bug for bug in BUGS if bug.name == "a message is sent before its blob is whole")
    with bug.plant(), pytest.raises(Broken):
        run(1)
