"""`nightmail verify`, short."""

from __future__ import annotations

import json

from tests.cli.hand import Hand

PROMISES = ("lost", "doubled", "reordered", "unexplained", "unticked", "failed")


def test_a_server_of_ones_own_is_tried_without_being_killed(hand: Hand) -> None:
    words = ("verify", "--server", hand.server.url, "--seconds", "2", "--people", "2", "--seed", "5", "--rate", "10")
    result = hand.types(*words)
    told = json.loads(result.stdout.splitlines()[-1])
    assert (result.exit_code, {name: told[name] for name in PROMISES}) == (0, dict.fromkeys(PROMISES, 0))
    assert told["sent"] == told["delivered"] > 0
    assert (told["campaign"], told["seed"], told["kills"]) == ("verify", 5, 0)
    assert "unexplained redeliveries" in result.stderr
    assert hand.server.pid is not None


def test_a_server_of_its_own_is_killed_and_keeps_its_promises(hand: Hand) -> None:
    result = hand.types("verify", "--seconds", "3", "--people", "2", "--seed", "1", "--json")
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert (result.exit_code, {name: told[name] for name in PROMISES}) == (0, dict.fromkeys(PROMISES, 0))
    assert told["kills"] == 1
    assert result.stderr == ""
