"""Engines of one test run: each is started once, when the first test asks for it, and ended with the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.engines import Engines


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    made = Engines(tmp_path_factory.mktemp("engines"))
    yield made
    made.down()
