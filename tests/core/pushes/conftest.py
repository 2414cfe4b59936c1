from __future__ import annotations

import pytest

from tests.core.push_world import PushWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> PushWorld:
    shards, memory = request.param
    return PushWorld(shards, memory)
