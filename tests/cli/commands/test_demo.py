"""`nightmail demo`."""

from __future__ import annotations

import json

from tests.cli.hand import Hand


def test_every_message_of_the_demo_arrives_once_although_the_server_is_killed(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"messages": 6, "kills": 1, "kept": True}


def test_without_a_terminal_each_caption_is_a_line_and_the_screen_comes_last(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("A server, Ada's phone, and Bob's two devices.\n")
    assert "Bob's laptop  ● online" in result.stdout.partition("nightmail demo\n")[2]
