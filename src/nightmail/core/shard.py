"""What an operator says to a shard as a whole: its limits, and the version of its fold.

Knows:   the newest version that this program has.
Touches: the shard's own row.
"""

from __future__ import annotations

from nightmail.model.records import FoldRaised, LimitsSet

from .due import begin_fine_slots
from .rules import Steps, needs_nothing
from .state import State


class FoldTooNew(Exception):
    """The log asks for a fold that this program does not know: it must be upgraded before it goes on."""

    def __init__(self, version: int, newest: int) -> None:
        self.version, self.newest = version, newest
        super().__init__(f"the log is folded as version {version} says; this program knows up to {newest}")


def step_limits_set(state: State, _by: int, _via: int, limits_set: LimitsSet) -> None:
    state.shard.limits = limits_set.limits


def step_fold_raised(state: State, _by: int, _via: int, raised: FoldRaised) -> None:
    shard = state.shard
    if raised.version > state.newest_fold:
        raise FoldTooNew(raised.version, state.newest_fold)
    if shard.fold < 2 <= raised.version:
        begin_fine_slots(shard)
    shard.fold = max(shard.fold, raised.version)
    state.notice_fold()


STEPS: Steps = {
    1: {
        LimitsSet: (needs_nothing, step_limits_set),
        FoldRaised: (needs_nothing, step_fold_raised),
    }
}
