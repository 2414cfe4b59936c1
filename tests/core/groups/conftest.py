from __future__ import annotations

import pytest

from tests.core.group_world import GroupWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def town(request: pytest.FixtureRequest) -> GroupWorld:
    shards, memory = request.param
    return GroupWorld(shards, memory)
