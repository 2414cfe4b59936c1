"""The pytest fixture `nightmail_server`: `pytest_plugins = ["nightmail.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from .running import RunningServer, running_server


@pytest.fixture
def nightmail_server() -> Generator[RunningServer]:
    """A real server process for one test."""
    with running_server() as server:
        yield server
