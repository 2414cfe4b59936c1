"""`nightmail verify`, short."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.hand import NOBODY, Hand

PROMISES = ("lost", "doubled", "reordered", "unexplained", "unticked", "failed")


def test_a_server_of_ones_own_is_tried_without_being_killed(hand: Hand) -> None:
    words = ("verify", "--server", hand.server.url, "--seconds", "2", "--people", "2", "--seed", "5", "--rate", "10")
    result = hand.types(*words)
    told = json.loads(result.stdout.splitlines()[-1])
    assert (result.exit_code, {name: told[name] for name in PROMISES}) == (0, dict.fromkeys(PROMISES, 0))
    assert told["sent"] == told["delivered"] > 0
    assert (told["campaign"], told["seed"], told["kills"]) == ("verify", 5, 0)
    assert "unexplained redeliveries" in result.stderr
    assert "Every promise was kept." in result.stderr
    assert hand.server.pid is not None


def test_a_server_of_its_own_is_killed_and_keeps_its_promises(hand: Hand) -> None:
    result = hand.types("verify", "--seconds", "3", "--people", "2", "--seed", "1", "--json")
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert (result.exit_code, {name: told[name] for name in PROMISES}) == (0, dict.fromkeys(PROMISES, 0))
    assert told["kills"] == 1
    assert result.stderr == ""


def test_a_server_that_does_not_answer_is_told_in_a_sentence(hand: Hand) -> None:
    result = hand.types("verify", "--server", NOBODY, "--seconds", "1", "--json")
    assert result.exit_code == 11
    assert json.loads(result.stdout)["message"] == result.stderr.removeprefix("nightmail: ").strip()


def test_ending_the_command_ends_its_server(hand: Hand) -> None:
    words = [sys.executable, "-m", "nightmail", "demo", "--beat", "60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("A server")
        (server,) = children(process.pid)
        process.terminate()
        _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors
    assert process.returncode == 130
    assert not Path(f"/proc/{server}").exists()


def children(pid: int) -> list[int]:
    found = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for line in found for child in line]
