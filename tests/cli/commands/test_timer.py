"""`nightmail timer`, and what the other commands show of disappearing messages."""

from __future__ import annotations

import pytest

from tests.cli.hand import NOBODY, Hand, a_conversation, one_sentence

HOUR = 3_600_000


def test_a_timer_is_set_seen_by_both_and_carried_by_what_is_written_then(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    (before,) = hand.gets("timer", bob, "-p", ada)
    assert before["timer_ms"] == 0
    (change,) = hand.gets("timer", bob, "1h", "-p", ada)
    assert (change["to"], change["timer_ms"], change["state"]) == (bob, HOUR, "sent")
    heard = hand.gets("listen", "-p", bob, "--until-empty")
    (told,) = [each for each in heard if each["type"] == "timer_changed"]
    assert (told["message_id"], told["peer"], told["own"], told["timer_ms"]) == (
        change["message_id"], ada, False, HOUR,
    )  # fmt: skip
    assert hand.gets("timer", ada, "-p", bob)[0]["timer_ms"] == HOUR
    hand.gets("send", "-p", bob, ada, "Between us")
    hand.gets("listen", "-p", ada, "--until-empty")
    *_, line, message = hand.gets("history", bob, "-p", ada)
    assert (line["type"], line["own"], line["timer_ms"]) == ("timer_changed", True, HOUR)
    assert (message["text"], message["life_ms"]) == ("Between us", HOUR)
    shown = hand.types("history", ada, "-p", bob).stdout
    assert f"{ada}: (set the timer: messages disappear 1 hour after they were read)" in shown
    assert hand.types("timer", bob, "off", "-p", ada).stdout.startswith(
        f"Messages with {bob} do not disappear.\n✓ sent"
    )
    assert hand.types("timer", bob, "-p", ada).stdout == f"Messages with {bob} do not disappear.\n"


def test_a_timer_that_is_set_offline_waits_in_the_outbox_and_counts_here_at_once(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    result = hand.types("timer", bob, "5m", "-p", ada, "--server", NOBODY)
    assert result.exit_code == 14
    assert result.stdout.startswith(f"Messages with {bob} disappear 5 minutes after they were read.\n🕓 pending")
    assert hand.gets("timer", bob, "-p", ada)[0]["timer_ms"] == 300_000
    hand.gets("listen", "-p", ada, "--until-empty")
    hand.gets("listen", "-p", bob, "--until-empty")
    assert hand.gets("timer", ada, "-p", bob)[0]["timer_ms"] == 300_000


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("29s", "A message disappears after 30 seconds to 7 days, or never."),
        ("8d", "A message disappears after 30 seconds to 7 days, or never."),
        ("soon", "'soon' is no length of time: write 30s, 5m, 1h, 7d, or off."),
    ],
)
def test_what_can_be_no_timer_is_refused_with_a_sentence_and_nothing_is_sent(hand: Hand, after: str, why: str) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    result = hand.types("timer", bob, after, "-p", ada)
    assert (result.exit_code, why in one_sentence(result)) == (2, True)
    assert hand.gets("history", bob, "-p", ada) == []


def test_a_change_is_no_unread_message(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    hand.gets("timer", bob, "1h", "-p", ada)
    hand.gets("send", "-p", ada, bob, "unread")
    hand.gets("listen", "-p", bob, "--until-empty", "--peek")
    listed = hand.gets("listen", "-p", bob, "--until-empty")
    assert [each["text"] for each in listed if each["type"] == "message"] == ["unread"]
    assert [each for each in listed if each["type"] == "timer_changed"] == []
