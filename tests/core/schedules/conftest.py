from __future__ import annotations

import pytest

from tests.core.schedule_world import ScheduleWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> ScheduleWorld:
    shards, memory = request.param
    return ScheduleWorld(shards, memory)
