from __future__ import annotations

from collections.abc import Iterator

import pytest

from sim.judges.strict import strictly
from tests.core.world import WORLDS, World


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with strictly():
        yield


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    shards, memory = request.param
    made = World(shards, memory)
    yield made
    made.check_ledgers()
