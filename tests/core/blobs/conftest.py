from __future__ import annotations

import pytest

from tests.core.blob_world import BlobWorld
from tests.core.world import WORLDS


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> BlobWorld:
    shards, memory = request.param
    return BlobWorld(shards, memory)
