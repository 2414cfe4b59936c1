"""`nightmail trace`."""

from __future__ import annotations

from nightmail.cli.json_shapes import time_fields
from tests.cli.hand import Hand, one_sentence


def test_an_operator_is_told_a_messages_whole_life(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (sent,) = hand.gets("send", "-p", ada, bob, "a secret")
    hand.gets("listen", "-p", bob, "--until-empty")
    (seen,) = hand.gets("trace", sent["message_id"], "--data", str(hand.server.folder))
    assert seen["message_id"] == sent["message_id"]
    assert [event["what"].partition(":")[0] for event in seen["events"]][:2] == ["accepted", "queued"]
    assert seen["events"] == [{**event, **time_fields("at", event["at_ms"])} for event in seen["events"]]
    assert list(seen["states"].values()) == ["read"]
    said = hand.types("trace", sent["message_id"], "--data", str(hand.server.folder)).stdout
    assert "accepted" in said
    assert "secret" not in said


def test_the_token_may_come_from_a_file_or_the_environment(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (sent,) = hand.gets("send", "-p", ada, bob, "Hello")
    file = hand.folder / "token"
    file.write_text(hand.server.operator_token + "\n")
    assert hand.gets("trace", sent["message_id"], "--token-file", str(file))
    for environ in (
        {"NIGHTMAIL_OPERATOR__TOKEN": hand.server.operator_token},
        {"NIGHTMAIL_OPERATOR__TOKEN_FILE": str(file)},
    ):
        assert hand.types("trace", sent["message_id"], **environ).exit_code == 0


def test_a_wrong_token_and_an_unknown_message_are_refused_without_repeating_them(hand: Hand) -> None:
    wrong = hand.types("trace", "1:2:3:x", NIGHTMAIL_OPERATOR__TOKEN="0123456789abcdef")
    assert wrong.exit_code == 12
    assert "0123456789abcdef" not in one_sentence(wrong)
    unknown = hand.types("trace", "1:2:3:x", "--data", str(hand.server.folder))
    assert unknown.exit_code == 12
    assert "no such message" in one_sentence(unknown)


def test_without_a_token_it_says_where_one_could_be(hand: Hand) -> None:
    result = hand.types("trace", "1:2:3:x")
    assert result.exit_code == 2
    assert "--token-file" in one_sentence(result)
    (hand.folder / "empty").write_text("")
    assert hand.types("trace", "1:2:3:x", "--token-file", "empty").exit_code == 2
