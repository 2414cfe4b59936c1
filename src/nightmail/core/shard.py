"""What concerns a shard as a whole: its limits, the version of its fold, and its time where that is put right.

Knows:   the newest version that this program has, and which version a cluster may raise.
Touches: the shard's own row.
"""

from __future__ import annotations

from collections.abc import Collection

from nightmail.model.answers import Done
from nightmail.model.effects import Answer
from nightmail.model.leaps import Doubt, Leap
from nightmail.model.records import ClockBelieved, ClockDoubted, ClockSetBack, FoldRaised, LimitsSet

from .due import begin_fine_slots
from .rules import Steps, needs_nothing
from .state import ShardState

DOUBTS_KEPT = 16
"""More than a server is switched off for days within the time that messages are kept."""
LEAPS_KEPT = 64
"""Likewise; and more than its time is set back."""
UNDOING_FOLD = 8
"""Since this one a clock may go wrong in several steps before the time is set back."""


class FoldTooNew(Exception):
    """The log asks for a fold that this program does not know: it must be upgraded before it goes on."""

    def __init__(self, version: int, newest: int) -> None:
        self.version, self.newest = version, newest
        super().__init__(f"the log is folded as version {version} says; this program knows up to {newest}")


def step_limits_set(state: ShardState, _by: int, _via: int, limits_set: LimitsSet) -> None:
    state.shard.limits = limits_set.limits


def step_fold_raised(state: ShardState, _by: int, _via: int, raised: FoldRaised) -> None:
    raise_fold(state, raised.version)


def raise_fold(state: ShardState, version: int) -> None:
    """From here on records are folded as `version` says, unless a newer one was raised before."""
    shard = state.shard
    if version > state.newest_fold:
        raise FoldTooNew(version, state.newest_fold)
    if shard.fold < 2 <= version:
        begin_fine_slots(shard)
    shard.fold = max(shard.fold, version)
    state.notice_fold()


def step_clock_set_back(state: ShardState, _by: int, via: int, back: ClockSetBack) -> None:
    """Go on from an earlier time. What was planned stays planned: moments count elapsed time (core/due.py)."""
    shard = state.shard
    shard.newest_time = max(shard.newest_time, shard.now, back.newest)
    if back.to < shard.now:
        if shard.fold > 3:
            _note_set_back(state, shard.now - back.to)
        shard.set_backs += 1
        shard.set_back_to, shard.set_back_by = back.to, state.offset
        shard.set_back_ms += shard.now - back.to
        shard.now = back.to
        if shard.fold < UNDOING_FOLD:
            # What was believed wrongly was doubted rightly: what was filed meanwhile has the right time. But a server
            # that was off for long, and then booted with a wrong clock, has doubted more than is set back now.
            shard.doubts = [doubt for doubt in shard.doubts if doubt.believed <= back.to]
        shard.doubted_from = min(shard.doubted_from, back.to)
    state.effects.append(Answer(via, Done()))


def _note_set_back(state: ShardState, ms: int) -> None:
    """What was planned before time leapt wrongly has aged by what is set back now."""
    shard, right = state.shard, state.elapsed - ms
    believed_later = [leap for leap in shard.leaps if leap.low and leap.high + leap.ms > right]
    if shard.fold < UNDOING_FOLD:
        shard.leaps = [leap for leap in shard.leaps if leap not in believed_later]
        _note_leap(state, Leap(0, right, ms))
        return
    # The last leap is undone first: what was planned between two of them has aged by the later one only. What was
    # planned during a doubt has not aged by its leap, whether that was right or not.
    for leap in reversed(believed_later):
        undone = sum(other.ms for other in shard.leaps if not other.low and other.high == leap.low)
        if part := min(ms, leap.ms - undone):
            _note_leap(state, Leap(0, leap.low, part))
            ms -= part
    if ms:
        _note_leap(state, Leap(0, right, ms))


def _note_leap(state: ShardState, leap: Leap) -> None:
    state.shard.leaps.append(leap)
    del state.shard.leaps[:-LEAPS_KEPT]


def step_clock_believed(state: ShardState, _by: int, _via: int, believed: ClockBelieved) -> None:
    """Go on from a later time. What was filed during the doubt has not aged by the leap (`filed_at` in core/due.py)."""
    shard = state.shard
    if believed.to > shard.now:
        # The doubt may have begun before the last start.
        low = min(believed.doubted_from, shard.doubted_from or believed.doubted_from)
        high = shard.now + shard.limits.ahead_ms  # A stamp may stand a little ahead of the shard's time.
        if shard.fold > 2:
            # Or far ahead, since a wrong clock was set back. What is stamped after `to` does not age by the leap.
            high = min(max(high, shard.newest_time + shard.limits.ahead_ms), believed.to)
            if shard.fold > 3:
                began = believed.doubted_from + shard.set_back_ms
                began = min(began, shard.doubted_elapsed or began)
                _note_leap(state, Leap(began, state.elapsed, believed.to - shard.now))
        shard.doubts.append(Doubt(low, high, believed.to))
        del shard.doubts[:-DOUBTS_KEPT]
        shard.now = believed.to
    shard.doubted_from = shard.doubted_elapsed = 0


def step_clock_doubted(state: ShardState, _by: int, _via: int, doubted: ClockDoubted) -> None:
    """A doubt that begins while another lasts, after a restart, is the same one."""
    shard = state.shard
    shard.doubted_from = min(doubted.began, shard.doubted_from or doubted.began)
    if shard.fold > 3:
        began = doubted.began + shard.set_back_ms if doubted.began else 0
        shard.doubted_elapsed = min(began, shard.doubted_elapsed or began)


def fold_to_raise(present: int, supported: Collection[int]) -> int | None:
    """The version that a shard is raised to; None if it stays at `present`.

    `supported` has the newest version of every node that may own the shard: one that cannot fold what another has
    raised would have to stop.
    """
    common = min(supported, default=present)
    return common if common > present else None


STEPS: Steps = {
    1: {
        LimitsSet: (needs_nothing, step_limits_set),
        FoldRaised: (needs_nothing, step_fold_raised),
    },
    2: {
        ClockSetBack: (needs_nothing, step_clock_set_back),
        ClockBelieved: (needs_nothing, step_clock_believed),
    },
    3: {
        ClockDoubted: (needs_nothing, step_clock_doubted),
    },
}
