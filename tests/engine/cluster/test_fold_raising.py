from __future__ import annotations

import pytest

from nightmail.engine.cluster.fold_raising import fold_to_raise


@pytest.mark.parametrize(
    ("present", "announced", "raised"),
    [
        (1, [2, 2, 2], 2),
        (1, [3, 2], 2),
        (1, [2, 1], None),
        (2, [2, 3], None),
        (3, [2, 2], None),
        (1, [], None),
    ],
)
def test_a_fold_is_raised_to_the_newest_that_every_node_supports(
    present: int, announced: list[int], raised: int | None
) -> None:
    assert fold_to_raise(present, announced) == raised
