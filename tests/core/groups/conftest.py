from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.group_world import GroupWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def town(request: pytest.FixtureRequest) -> Iterator[GroupWorld]:
    shards, memory = request.param
    made = GroupWorld(shards, memory)
    yield made
    made.check_ledgers()
