"""`nightmail serve`, as a process."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import Result

from nightmail.testing.running import free_port
from tests.cli.hand import Hand, one_sentence

WAIT_S = 120


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTMAIL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "nightmail", "serve", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environ,
    )  # fmt: skip


def read_until(process: subprocess.Popen[str], last: str) -> str:
    assert process.stdout is not None
    said = ""
    while last not in said:
        line = process.stdout.readline()
        assert line, f"it ended; so far: {said}"
        said += line
    return said


def hand_over(hand: Hand, line: str) -> Result:
    """Type a line as it was shown, for people of this test."""
    words = shlex.split(line.replace("ada", hand.name("ada")).replace("bob", hand.name("bob")))
    return hand.types(*words[words.index("nightmail") + 1 :], NIGHTMAIL_SERVER="")


def test_it_says_where_it_is_and_what_to_try_and_that_works(hand: Hand) -> None:
    port = str(free_port())
    with start("--port", port, "--log-level", "error", folder=hand.folder) as process:
        try:
            said = read_until(process, "Ctrl-C stops it")
            assert f"http://127.0.0.1:{port}" in said
            tries = [line.strip() for line in said.splitlines() if line.startswith("  ")]
            assert [hand_over(hand, line).exit_code for line in tries[:3]] == [0, 0, 0]
            assert "Hello, Bob." in hand_over(hand, f"{tries[3]} --until-empty").stdout
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAIT_S)
    assert (process.returncode, errors) == (0, "")


def test_scripts_get_one_line_when_it_can_be_connected_to(tmp_path: Path) -> None:
    port = free_port()
    with start("--json", "--server-port", str(port), "--data", "here", folder=tmp_path) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_S)
    assert told.keys() == {"url", "pid", "folder", "node"}
    assert (told["url"], told["folder"]) == (f"http://127.0.0.1:{port}", str(tmp_path / "here"))
    assert process.returncode == 0


def test_a_wrong_setting_stops_it_with_a_sentence(hand: Hand) -> None:
    result = hand.types("serve", "--port", "70000")
    assert result.exit_code == 2
    assert one_sentence(result).startswith("server.port (--server-port) cannot be 70000:")


def test_a_folder_in_use_stops_it_with_a_sentence_and_its_own_code(hand: Hand) -> None:
    with start("--port", "0", "--data", str(hand.server.folder), folder=hand.folder) as process:
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 3
    assert "in use by process" in errors
    assert "Traceback" not in errors


def test_every_setting_has_a_flag_except_secrets(hand: Hand) -> None:
    assert hand.types("serve", "--limits-mailbox-entries", "0").exit_code == 2
    assert "No such option" in hand.types("serve", "--operator-token", "x").stderr
