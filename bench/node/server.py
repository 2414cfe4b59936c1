"""A server process, started by its command line, and killed or stopped.

Knows:   where it listens, its process id, what it wrote to standard error.
Touches: one data folder, signals to its own child.
"""

from __future__ import annotations

import os
import pstats
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

from nightmail.core.state import NEWEST_FOLD
from nightmail.testing.running import free_port

from .machine import cpu_ns, private_kib
from .serve import FOLD, PROFILE

START_S = 300.0
"""A server that has a long log to read may take so long."""

MANY = str(10**9)
RAISED: Mapping[str, str] = {
    "NIGHTMAIL_GATEWAY__SENDS_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__SENDS_BURST": MANY,
    "NIGHTMAIL_GATEWAY__BYTES_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__BYTES_BURST": MANY,
    "NIGHTMAIL_GATEWAY__ITEMS_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__ITEMS_BURST": MANY,
    "NIGHTMAIL_GATEWAY__ADDRESS_CONNECTS_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__ADDRESS_CONNECTS_BURST": MANY,
    "NIGHTMAIL_GATEWAY__ADDRESS_REQUESTS_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__ADDRESS_REQUESTS_BURST": MANY,
    "NIGHTMAIL_GATEWAY__ADDRESS_STRANGERS": MANY,
    "NIGHTMAIL_HTTP__ADDRESS_CONNECTIONS": MANY,
    "NIGHTMAIL_HTTP__REGISTRATIONS_PER_MINUTE": "0",
    "NIGHTMAIL_LIMITS__STRANGER_ENTRIES": MANY,
    "NIGHTMAIL_LIMITS__STRANGER_BYTES": MANY,
}
"""One benchmark device sends as much as thousands, all from one address: limits of one device or address are lifted."""
ADMIT_ALL: Mapping[str, str] = {
    "NIGHTMAIL_GATEWAY__CONNECTS_PER_S": MANY,
    "NIGHTMAIL_GATEWAY__CONNECTS_BURST": MANY,
}


class ServerFailed(Exception):
    """The server did not start, or ended by itself."""


def command(*, wrapped: bool = False) -> list[str]:
    return [sys.executable, "-m", *(("bench.node.serve",) if wrapped else ("nightmail", "serve"))]


class Server:
    """Use it with `with`; `kill` and `start` as often as wanted in between."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, profile: int = 0, fold: int = NEWEST_FOLD
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTMAIL_")}
        self._environ |= {
            **RAISED, **(settings or {}),
            "NIGHTMAIL_SERVER__PORT": str(self.port),
            "NIGHTMAIL_DATA__FOLDER": str(folder),
            "NIGHTMAIL_LOG__LEVEL": "warning",
        }  # fmt: skip
        self._profile, self._profile_file = profile, folder.with_name(folder.name + ".profile")
        self._wrapped = bool(profile) or fold != NEWEST_FOLD
        self._environ[FOLD] = str(fold)
        if profile:
            self._environ[PROFILE] = str(self._profile_file)
        self._process: subprocess.Popen[bytes] | None = None
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the server)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._profile:
            self.stop()
            pstats.Stats(str(self._profile_file), stream=sys.stderr).sort_stats("tottime").print_stats(self._profile)
        self.kill()
        self._words.close()

    def start(self) -> float:
        """Returns when it is ready: after how many seconds."""
        began = time.monotonic()
        self._process = subprocess.Popen(
            command(wrapped=self._wrapped), env=self._environ, stdout=self._words, stderr=self._words
        )
        while not self._is_ready():
            if self._process.poll() is not None:
                raise ServerFailed(f"exit code {self._process.returncode}: {self.last_words()}")
            if time.monotonic() - began > START_S:
                self.kill()
                raise ServerFailed(f"not ready after {START_S:.0f} s: {self.last_words()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def last_words(self) -> str:
        self._words.seek(0)
        return self._words.read()[-500:].decode(errors="replace").strip() or "it said nothing"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no last checkpoint."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: everything is saved."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(number)
            self._process.wait(START_S)

    def check(self) -> None:
        """It must still be there."""
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            raise ServerFailed(f"it ended by itself with {code}: {self.last_words()}")

    def cpu_ns(self) -> int:
        return cpu_ns(self.pid)

    def private_kib(self) -> int:
        return private_kib(self.pid)
