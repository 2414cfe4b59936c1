"""A server process: start, kill, restart, stop.

Knows:   `nightmail serve --json` prints one line when it accepts connections, or one error.
Touches: the process it started, and the folder it made. Both are gone when the `with` block ends.
Never:   kills a process that it did not start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nightmail.server.operator import FILE_NAME

from .registered_device import RegisteredDevice

START_S = 180.0
"""A start that takes longer has failed: a log of millions of records is read in less."""

PORTS_TRIED = 5
"""Before a start has failed for want of a port."""

SMALL: Mapping[str, object] = {
    "data.segment_bytes": 4 << 20,
    "gateway.stop_ms": 1,
    "gateway.address_connects_burst": 1_000_000,
    "gateway.address_requests_burst": 1_000_000,
    "http.registrations_per_minute": 0,
    "http.links_per_minute": 4_095,
    "log.level": "warning",
}
"""For tests: little disk, a quick stop, no limits on registering, linking, and on what one address does. None affects
delivery."""


class ServerFailed(Exception):
    """The process did not start. The text holds its output."""


class RunningServer:
    """Use it with `with` or `async with`. All methods return when the change is complete."""

    program: Sequence[str] = ("-m", "nightmail")
    """What the interpreter is started with."""

    def __init__(self, settings: Mapping[str, object] | None = None, folder: Path | None = None, port: int = 0) -> None:
        self._settings = dict(SMALL) | dict(settings or {})
        self._given, self._port = folder, port
        self._process: subprocess.Popen[bytes] | None = None
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self.url = ""

    def __repr__(self) -> str:
        return f"<server at {self.url or 'nowhere'}, process {self.pid}>"

    # --- with -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="nightmail-", ignore_cleanup_errors=True)
        try:
            self.start()
        except BaseException:
            self._home.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # The folder is removed afterwards, so no last checkpoint is needed.
            self.kill()
        finally:
            if self._home:
                self._home.cleanup()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    # --- properties -----------------------------------------------------------------------------

    @property
    def home(self) -> Path:
        """A temporary folder that holds the data folder and the profiles of `register`."""
        assert self._home is not None, "use `with`"
        return Path(self._home.name)

    @property
    def folder(self) -> Path:
        """The data folder."""
        return self._given or self.home / "data"

    @property
    def pid(self) -> int | None:
        """None if it does not run."""
        return self._process.pid if self._process else None

    @property
    def port(self) -> int:
        return self._port

    @property
    def operator_token(self) -> str:
        return (self.folder / FILE_NAME).read_text("ascii").strip()

    # --- start and stop -------------------------------------------------------------------------

    def start(self) -> None:
        """Start it on its folder. Returns when it accepts connections. Raises ServerFailed."""
        assert self._process is None, "it runs already"
        told, port = dict[str, Any](), 0
        for _ in range(PORTS_TRIED):
            port = self._port or free_port()
            told = self._launch(port)
            # Between the look at a free port and the start, another process may take it.
            if self._port or told.get("error") != "cannot_listen":
                break
        self.url = told.get("url", "")
        if not self.url:  # it printed nothing, or an error
            raise ServerFailed(f"the server did not start: {self.log.strip()[-2_000:] or 'it printed nothing'}")
        self._port = port

    def _launch(self, port: int) -> dict[str, Any]:
        """Start a process. Returns what it printed: its address, or an error, which has ended it."""
        flags = {**self._settings, "data.folder": self.folder, "server.port": port}
        words = [f"--{name.replace('.', '-').replace('_', '-')}={_flag_value(value)}" for name, value in flags.items()]
        # Settings in the environment of the tests must not reach the server.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTMAIL_")}
        with self._open_log() as log:
            process = self._process = subprocess.Popen(
                [sys.executable, *self.program, "serve", "--json", *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environ, process_group=0,
            )  # fmt: skip
        # readline has no timeout, and there may be no event loop: a timer kills a process that prints nothing.
        overdue = threading.Timer(START_S, process.kill)
        overdue.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        except BaseException:
            self.kill()
            raise
        finally:
            overdue.cancel()
        told: dict[str, Any] = json.loads(line) if line else {}
        if "url" not in told:
            self.kill()
        return told

    def kill(self) -> None:
        """SIGKILL. Every acknowledged record is in the log."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: closes the connections, and takes a last checkpoint."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it if it runs, and start it on the same port and folder."""
        self.kill()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            process.wait()
            if process.stdout:
                process.stdout.close()

    @property
    def log(self) -> str:
        """Its standard error, over all its starts."""
        try:
            return (self.home / "server.log").read_text("utf-8", "replace")
        except OSError:
            return ""

    def _open_log(self) -> Any:
        return (self.home / "server.log").open("ab")

    # --- devices --------------------------------------------------------------------------------

    def register(self, handle: str) -> RegisteredDevice:
        """Create an account with its first device."""
        device = RegisteredDevice(handle, self._profile(handle), self.url)
        _run_in_thread(_join(device))
        return device

    def link(self, device: RegisteredDevice, label: str = "second device") -> RegisteredDevice:
        """Link another device to the same account."""
        other = RegisteredDevice(device.handle, self._profile(device.handle), self.url)
        _run_in_thread(_link(device, other, label))
        return other

    def _profile(self, handle: str) -> Path:
        name = handle.encode().hex() if not handle.isalnum() else handle
        for number in range(1, 1 << 12):
            path = self.home / "profiles" / f"{name}-{number}"
            if not path.exists():
                return path
        raise AssertionError("an account does not have that many devices")


def running_server(
    settings: Mapping[str, object] | None = None, *, folder: Path | None = None, port: int = 0
) -> RunningServer:
    """A server for a test. `settings` are named as in docs/configuration.md: {"limits.mailbox_entries": 10}."""
    return RunningServer(settings, folder, port)


def free_port() -> int:
    """A free port outside the kernel's range for outgoing connections.

    A port inside that range could be taken by a client's connection while the server is down.
    """
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        lowest = 32_768
    for _ in range(1_000):
        port = secrets.choice(range(10_000, max(lowest, 10_001)))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerFailed("no port is free on this machine")


async def _join(device: RegisteredDevice) -> None:
    async with device.client(handle=device.handle) as client:
        await client.ready()


async def _link(device: RegisteredDevice, other: RegisteredDevice, label: str) -> None:
    async with device.client() as client:
        await client.link_here(other.profile, label)


def _run_in_thread(work: Any) -> None:
    """Run a coroutine to its end in another thread, because an event loop may already run in this one."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            failed.append(error)

    thread = threading.Thread(target=run, name="nightmail register")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _flag_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
