from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.schedule_world import ScheduleWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> Iterator[ScheduleWorld]:
    shards, memory = request.param
    made = ScheduleWorld(shards, memory)
    yield made
    made.check_ledgers()
