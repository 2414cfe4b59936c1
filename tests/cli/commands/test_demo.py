"""`nightmail demo`."""

from __future__ import annotations

import json

from tests.cli.hand import Hand


def test_every_message_of_the_demo_arrives_once_although_the_server_is_killed(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"messages": 9, "kills": 1, "kept": True}


def test_without_a_terminal_each_caption_is_a_line_and_the_screen_comes_last(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("A server, Ada's phone, and Bob's two devices.\n")
    assert "Cleo's phone ● online" in result.stdout.partition("nightmail demo\n")[2]


def test_the_demo_ends_with_a_group_whose_members_have_read_every_message(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0")
    assert result.exit_code == 0, result.output
    screen = result.stdout.partition("nightmail demo\n")[2]
    assert screen.count("read by 2 of 2") == 3
    assert [screen.count(words) for words in ("Sunday?", "I'll bring tea.", "Count me in!")] == [3, 3, 3]
