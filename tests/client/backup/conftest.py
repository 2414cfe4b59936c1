"""One real node for backups on a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.rig import Town, serving


@pytest.fixture(scope="package")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with serving(tmp_path_factory.mktemp("node"), http__registrations_per_minute=0) as town:
        yield town
