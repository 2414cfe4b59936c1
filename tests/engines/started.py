"""Real engines that the tests of one run share, over all its processes: started when the first asks, ended by the last.

Knows:   how many processes use them.
Never:   starts an engine for a run in which no test asks for it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from engines.engines import Engines
from engines.jars import COORDINATES, folder
from engines.plans import HOST


class StartedEngines:
    def __init__(self, home: Path) -> None:
        self._home, self._engines = home, Engines(home)
        self._joined = False
        self._names: dict[str, str] = {}
        self._number = 0

    def address(self, kind: str) -> str:
        """Where it serves. Skips the test, in loud words, where it cannot be had."""
        if kind in COORDINATES and not folder(kind).exists():
            pytest.skip(f"the jars of {kind} are missing: NOTHING IS TRIED ON A REAL {kind.upper()}; make engines")
        program = "java" if kind in COORDINATES else "redis-server"
        if not shutil.which(program):
            pytest.skip(f"{program} is missing: NOTHING IS TRIED ON A REAL {kind.upper()}")
        with self._locked():
            if not self._joined:
                self._joined = True
                self._count(1)
            self._engines.up([kind])
            return f"{HOST}:{self._engines.plans[kind].port}"

    def new_name(self, what: str) -> str:
        """For something that no other test has."""
        return f"{what}_{uuid4().hex[:12]}"

    def once(self, what: str) -> str:
        """A name for something that all tests of this process share."""
        return self._names.setdefault(what, self.new_name(what))

    def next_number(self) -> int:
        """One that no other test of this process has."""
        self._number += 1
        return self._number

    def leave(self) -> None:
        if self._joined:
            with self._locked():
                if self._count(-1):
                    self._engines.let_go()
                else:
                    self._engines.down()

    def _count(self, change: int) -> int:
        file = self._home / "users"
        users = (int(file.read_text()) if file.exists() else 0) + change
        file.write_text(str(users))
        return users

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@pytest.fixture(scope="session", name="engines")
def started_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedEngines]:
    base = tmp_path_factory.getbasetemp()
    # Each of several processes has a folder of its own below that of the run.
    started = StartedEngines((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "engines")
    yield started
    started.leave()
