"""One real server for all tests of the command line; every test has its own people and profiles."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from nightmail.testing import RunningServer, running_server
from tests.cli.hand import Hand


@pytest.fixture(scope="session")
def server() -> Generator[RunningServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def hand(server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hand:
    """Somebody at a terminal, whose profiles are in a folder of their own."""
    for variable in (
        "NIGHTMAIL_PASSPHRASE",
        "NIGHTMAIL_PASSPHRASE_FILE",
        "NIGHTMAIL_PIN",
        "NIGHTMAIL_PROFILE",
        "NIGHTMAIL_CONFIG",
        "NIGHTMAIL_OPERATOR__TOKEN",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("NIGHTMAIL_SERVER", server.url)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return Hand(server, tmp_path)
