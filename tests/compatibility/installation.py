"""The programs of one commit, run as processes on one home folder, at a time of our choosing.

Knows:   the interpreter in whose environment that commit is installed; the home folder; the pretended time.
Touches: the processes it starts, and the home folder.
Never:   imports the programs: an earlier commit's cannot be in this process.

A message may wait 29 days in an outbox and 30 days in a mailbox. A kept example must open in any later year, so
its makers and its readers have their clocks set (`clock/sitecustomize.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CLOCK = Path(__file__).parent / "clock"
PASSPHRASES = {"bob": "correct horse battery staple"}
"""Of the profiles that are protected by one; the others have a key file."""
SETTINGS = {
    "data-segment-bytes": "4194304",
    "gateway-stop-ms": "1",
    "http-registrations-per-minute": "0",
    "log-level": "warning",
}
NOWHERE = "http://127.0.0.1:9"
"""An address where nothing listens."""
END_S = 120
"""A command that takes longer has failed."""


class Installation:
    def __init__(self, python: Path, home: Path, now: datetime) -> None:
        """`now` is what the clock of its processes says at this moment."""
        self.python, self.home = python, home
        self.url = NOWHERE
        offset = now - datetime.now(UTC)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTMAIL_")}
        self._environ = ours | {
            "COMPATIBILITY_CLOCK_OFFSET_S": str(int(offset.total_seconds())),
            "PYTHONPATH": str(CLOCK),
        }

    @contextmanager
    def serving(self, folder: str) -> Generator[subprocess.Popen[str]]:
        """A server on this data folder of the home folder; killed at the end if it still runs."""
        flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
        command = [self.python, "-m", "nightmail", "serve", "--json", f"--data={self.home / folder}", "--port=0"]
        with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, env=self._environ, text=True) as process:
            try:
                assert process.stdout is not None
                self.url = json.loads(process.stdout.readline())["url"]
                yield process
            finally:
                self.url = NOWHERE
                process.kill()

    def start(self, profile: str, *words: str) -> subprocess.Popen[str]:
        """A command with --json that the caller waits for."""
        command, environ = self._command(profile, words)
        return subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True)

    def run(self, profile: str, *words: str, code: int = 0) -> list[dict[str, Any]]:
        """What a command with --json prints. It ends with this exit code."""
        command, environ = self._command(profile, words)
        done = subprocess.run(command, capture_output=True, check=False, env=environ, text=True, timeout=END_S)
        assert done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def run_python(self, script: str, *words: str) -> None:
        """A script that uses the library of this installation."""
        subprocess.run([self.python, "-c", script, *words], check=True, env=self._environ, timeout=END_S)

    def profile(self, name: str) -> Path:
        return self.home / "profiles" / name

    def _command(self, profile: str, words: tuple[str, ...]) -> tuple[list[str | Path], dict[str, str]]:
        environ = {**self._environ, "NIGHTMAIL_SERVER": self.url, "XDG_DATA_HOME": str(self.home)}
        if passphrase := PASSPHRASES.get(profile):
            environ["NIGHTMAIL_PASSPHRASE"] = passphrase
        return [self.python, "-m", "nightmail", *words, "--profile", self.profile(profile), "--json"], environ
