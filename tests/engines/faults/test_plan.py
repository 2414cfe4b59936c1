from __future__ import annotations

from engines.faults.plan import HABITS, Kind, faults


def test_the_same_seed_gives_the_same_faults_and_every_kind_comes() -> None:
    first, again, other = faults(1, 200, 3), faults(1, 200, 3), faults(2, 200, 3)
    assert (first == again, first == other) == (True, False)
    assert {fault.kind for fault in first} == set(HABITS) == set(Kind)
    assert all(fault.node != fault.other for fault in first)
