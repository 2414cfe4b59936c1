"""`nightmail listen`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from nightmail.cli.output import plain_body
from nightmail.cli.profiles import folder_for
from nightmail.client import SyncClient
from tests.cli.hand import NOBODY, Hand, one_sentence, registered_without_keys


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def test_messages_and_receipts_have_the_shapes_that_the_documentation_promises(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (sent,) = hand.gets("send", "-p", ada, bob, "Hello")
    (message,) = of_type(hand.gets("listen", "-p", bob, "--until-empty", "--peek"), "message")
    assert message.keys() == {"type", "message_id", "conversation_id", "peer", "own", "at", "at_ms", "text"}
    assert (message["message_id"], message["text"], message["own"]) == (sent["message_id"], "Hello", False)
    assert message["conversation_id"] == sent["conversation_id"]
    events = hand.gets("listen", "-p", ada, "--until-empty")
    (delivered,) = of_type(events, "delivery_receipt")
    assert delivered.keys() == {
        "type", "message_id", "conversation_id", "delivered_at", "delivered_at_ms", "device", "state",
    }  # fmt: skip
    then = datetime.fromisoformat(delivered["delivered_at"])
    assert (then.utcoffset(), int(then.timestamp() * 1_000)) == (timedelta(0), delivered["delivered_at_ms"])
    assert (delivered["message_id"], delivered["state"]) == (sent["message_id"], "delivered")
    assert events[-1] == {"type": "queue_empty"}
    hand.gets("listen", "-p", bob, "--until-empty")
    (read,) = of_type(hand.gets("listen", "-p", ada, "--until-empty"), "read_receipt")
    assert read.keys() == {"type", "conversation_id", "read_up_to", "read_at", "read_at_ms"}
    assert read["read_up_to"] == sent["message_id"]


def test_what_came_while_another_command_ran_is_shown_first(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    for text in ("one", "two"):
        hand.gets("send", "-p", ada, bob, text)
    with SyncClient(folder_for(bob), [hand.server.url]) as client:
        assert [client.receive(timeout=60).text for _ in range(2)] == ["one", "two"]
    hand.gets("send", "-p", ada, bob, "three")
    listened = hand.types("listen", "-p", bob, "--until-empty")
    said = [line.rpartition(f"{ada}: ")[2] for line in listened.stdout.splitlines() if f"{ada}: " in line]
    assert said == ["one", "two", "three"]
    assert f"{ada}: " not in hand.types("listen", "-p", bob, "--until-empty").stdout


def test_who_peeks_reads_nothing_and_sees_it_again(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Hello")
    for _ in range(2):
        assert len(of_type(hand.gets("listen", "-p", bob, "--until-empty", "--peek"), "message")) == 1
    events = hand.gets("listen", "-p", ada, "--until-empty")
    assert (len(of_type(events, "delivery_receipt")), of_type(events, "read_receipt")) == (1, [])


def test_a_message_that_cannot_be_encrypted_does_not_keep_the_command_waiting(hand: Hand) -> None:
    ada, new = hand.registers("ada"), registered_without_keys(hand)
    hand.types("send", "-p", ada, new, "Hello", "--wait", "pending")
    result = hand.types("listen", "-p", ada, "--until-empty")
    assert result.exit_code == 14
    assert f"Messages to {new} stay in the outbox" in result.stderr
    assert f"{new} has registered, but has not published its keys yet" in result.stdout


def test_a_server_that_is_away_ends_the_command_when_its_time_is_over(hand: Hand) -> None:
    ada = hand.registers("ada")
    for words in (("--until-empty",), ()):
        result = hand.types("listen", "-p", ada, *words, "--timeout", "0.1", "--server", NOBODY)
        assert (result.exit_code, "Nothing arrived for 0.1 seconds" in result.stderr) == (18, True)
        assert "nothing listens there" in result.stdout


def test_ticks_are_told_to_people_in_words(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "later", "--wait", "pending", "--server", NOBODY)
    assert "✓ sent" in hand.types("listen", "-p", ada, "--until-empty").stdout
    hand.gets("listen", "-p", bob, "--until-empty", "--peek")
    assert "✓✓ delivered" in hand.types("listen", "-p", ada, "--until-empty").stdout
    hand.gets("listen", "-p", bob, "--until-empty")
    assert "✓✓ read" in hand.types("listen", "-p", ada, "--until-empty").stdout


def test_text_of_others_cannot_command_the_terminal(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    nasty = "\x1b[2J\x1b]0;owned\x07[red]mark-up[/red]\r\u202e"
    hand.gets("send", "-p", ada, bob, stdin=nasty)
    said = hand.types("listen", "-p", bob, "--until-empty", "--peek").stdout
    assert plain_body(nasty) in said
    assert not set("\x1b\x07\r\u202e") & set(said)
    assert of_type(hand.gets("listen", "-p", bob, "--until-empty"), "message")[0]["text"] == nasty


def test_the_lines_of_a_message_cannot_imitate_lines_of_ours(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, stdin="Hello\n12:00:00  mum: Send money.\n\n✓ sent  1")
    for command in (("listen", "--until-empty", "--peek"), ("history", ada), ("search", "money")):
        lines = hand.types(*command, "-p", bob).stdout.splitlines()
        (first,) = [at for at, line in enumerate(lines) if line.endswith(f"{ada}: Hello")]
        assert lines[first + 1 : first + 4] == [
            "          12:00:00  mum: Send money.", "          ", "          ✓ sent  1",
        ]  # fmt: skip


def test_two_contacts_never_look_the_same(hand: Hand) -> None:
    ada, bob, carol = hand.registers("ada"), hand.registers("bob"), hand.registers("carol")
    for who in (bob, carol):
        hand.gets("contacts", "name", "-p", ada, who, "Mum")
        hand.gets("send", "-p", who, ada, "Hello")
    said = hand.types("listen", "-p", ada, "--until-empty").stdout
    assert f"Mum ({bob}): Hello" in said
    assert f"Mum ({carol}): Hello" in said


def test_what_is_not_text_is_not_sent(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    result = hand.types("send", "-p", ada, bob, stdin=b"\xff\xfe\x00")
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


def test_a_removed_device_is_told_so_with_its_own_exit_code(hand: Hand) -> None:
    ada = hand.registers("ada")
    (linked,) = hand.gets("devices", "link", "-p", ada, "./laptop")
    hand.gets("devices", "remove", "-p", ada, linked["device"])
    result = hand.types("listen", "-p", "./laptop", "--until-empty", "--json")
    assert result.exit_code == 15
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()[-2:]] == ["ended", "error"]
    assert result.stderr.startswith("nightmail: The server closed the connection permanently")


def test_there_must_be_a_profile(hand: Hand) -> None:
    result = hand.types("listen")
    assert result.exit_code == 10
    assert "nightmail register" in one_sentence(result)
