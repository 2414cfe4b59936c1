from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.core.gaps import add_gap, drop_gaps, first_waiting, gap_at
from nightmail.model.rows import Gap, Queue
from nightmail.model.words import Reason

EXPIRED, UNDECRYPTABLE = Reason.EXPIRED, Reason.UNDECRYPTABLE
HEAD = 20

lost = st.dictionaries(st.integers(1, HEAD), st.sampled_from([EXPIRED, UNDECRYPTABLE]))


def gaps_of(missing: dict[int, Reason]) -> list[Gap]:
    gaps: list[Gap] = []
    for seq, reason in missing.items():
        add_gap(gaps, seq, reason)
    return gaps


def merged(missing: dict[int, Reason]) -> list[Gap]:
    """The same, made the slow way."""
    gaps: list[Gap] = []
    for seq in sorted(missing):
        if gaps and gaps[-1].high == seq - 1 and gaps[-1].reason == missing[seq]:
            gaps[-1] = Gap(gaps[-1].low, seq, missing[seq])
        else:
            gaps.append(Gap(seq, seq, missing[seq]))
    return gaps


def test_neighbours_with_one_reason_become_one() -> None:
    assert gaps_of({3: EXPIRED, 5: EXPIRED, 4: EXPIRED}) == [Gap(3, 5, EXPIRED)]


def test_neighbours_with_two_reasons_stay_two() -> None:
    assert gaps_of({3: EXPIRED, 4: UNDECRYPTABLE}) == [Gap(3, 3, EXPIRED), Gap(4, 4, UNDECRYPTABLE)]


@given(lost)
def test_gaps_are_sorted_and_merged_in_whatever_order_they_arise(missing: dict[int, Reason]) -> None:
    assert gaps_of(missing) == merged(missing)


@given(lost)
def test_every_missing_number_is_found_and_no_other(missing: dict[int, Reason]) -> None:
    gaps = gaps_of(missing)
    for seq in range(HEAD + 2):
        gap = gap_at(gaps, seq)
        assert (gap.reason if gap else None) == missing.get(seq)
        assert gap is None or gap.low <= seq <= gap.high


@given(lost, st.integers(0, HEAD + 1))
def test_what_was_acknowledged_is_forgotten_and_the_rest_is_kept(missing: dict[int, Reason], upto: int) -> None:
    gaps = gaps_of(missing)
    drop_gaps(gaps, upto)
    assert gaps == merged({seq: reason for seq, reason in missing.items() if seq > upto})


@given(lost, st.integers(0, HEAD))
def test_the_first_waiting_number_is_the_lowest_that_is_not_missing(missing: dict[int, Reason], acked: int) -> None:
    gaps = gaps_of(missing)
    drop_gaps(gaps, acked)
    waiting = [seq for seq in range(acked + 1, HEAD + 1) if seq not in missing]
    assert first_waiting(Queue(HEAD, acked, len(waiting), gaps)) == min(waiting, default=HEAD + 1)
