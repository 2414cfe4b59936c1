from __future__ import annotations

import pytest

from nightmail.core import handles
from sim.planted.tools import edit
from sim.runs.handles import Broken, run


def test_lookalikes_and_twins_that_register_at_the_same_time_never_share_a_look_or_an_id() -> None:
    for seed in range(1, 11):
        run(seed)


def test_the_judge_sees_two_accounts_with_one_look() -> None:
    claims_anything = edit(handles.step_handle_claimed, "claim is not None and claim.handle != new.handle", "False")
    with claims_anything(), pytest.raises(Broken, match="look alike, and both are registered"):
        run(1)
