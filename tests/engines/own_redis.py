"""A real Redis for one test, which may kill, pause and wipe it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightmail.testing.running import free_port

PASSWORD = "nobodys"


class OwnRedis:
    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [
            "redis-server", "--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--appendonly", "no",
            "--dir", str(self._folder), "--requirepass", PASSWORD, "--loglevel", "warning",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def _send(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """It keeps nothing: what starts again is empty."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(name="redis")
def own_redis(tmp_path: Path) -> Iterator[OwnRedis]:
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is missing: NOTHING IS TRIED ON A REAL REDIS")
    made = OwnRedis(tmp_path)
    yield made
    made.kill()
