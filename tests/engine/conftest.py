"""Every fold that an engine test drives is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sim.judges.strict import strictly


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with strictly():
        yield
