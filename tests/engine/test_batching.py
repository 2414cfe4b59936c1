from __future__ import annotations

import pytest

from nightmail.engine.batching import count_fitting, records_at_once
from nightmail.engine.ports import RECORD_OVERHEAD

TEN = 10 + RECORD_OVERHEAD


@pytest.mark.parametrize(
    ("records_max", "bytes_max", "count"),
    [(9, 10**6, 3), (2, 10**6, 2), (9, 3 * TEN, 3), (9, 3 * TEN - 1, 2), (9, 1, 1), (1, 1, 1)],
)
def test_as_many_go_as_both_bounds_allow_and_one_in_any_case(records_max: int, bytes_max: int, count: int) -> None:
    assert count_fitting([b"." * 10] * 3, records_max, bytes_max) == count


def test_no_batch_has_more_records_than_its_span() -> None:
    assert [records_at_once(5, span) for span in (1, 3, 8)] == [5, 3, 5]


def test_of_nothing_nothing_goes() -> None:
    assert count_fitting([], 9, 9) == 0
