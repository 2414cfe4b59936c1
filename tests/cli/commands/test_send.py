"""`nightmail send`."""

from __future__ import annotations

import json
import re

import pytest

from nightmail.cli.profiles import folder_for
from nightmail.client import SyncClient
from nightmail.client.profile.profile import Profile
from tests.cli.hand import NOBODY, Hand, one_sentence, registered_without_keys


def texts(hand: Hand, who: str) -> list[str]:
    return [each["text"] for each in hand.gets("listen", "-p", who, "--until-empty") if each["type"] == "message"]


def test_a_message_is_sent_and_arrives_once(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (said,) = hand.gets("send", "-p", ada, bob, "Hello, Bob.")
    assert said.keys() == {"message_id", "conversation_id", "state", "to", "account"}
    assert (said["state"], said["to"]) == ("sent", bob)
    assert re.fullmatch(
        rf"✓ sent, to {bob}  [0-9a-f]+:\d+:\d+:\w+\n", hand.types("send", "-p", ada, bob, "Bye.").stdout
    )
    assert texts(hand, bob) == ["Hello, Bob.", "Bye."]
    assert texts(hand, bob) == []


def test_a_contacts_name_wins_over_the_handle_of_a_stranger(hand: Hand) -> None:
    ada, bob, mum = hand.registers("ada"), hand.registers("bob"), hand.registers("mum")
    name = mum.capitalize()
    hand.gets("contacts", "name", "-p", ada, bob, name)
    assert hand.gets("send", "-p", ada, mum, "Hello, Mum.")[0]["to"] == bob
    assert f"to {name} ({bob})" in hand.types("send", "-p", ada, mum.upper(), "Bye.").stdout
    assert (texts(hand, bob), texts(hand, mum)) == (["Hello, Mum.", "Bye."], [])


def test_a_name_that_can_mean_two_contacts_is_refused_with_both_of_them(hand: Hand) -> None:
    ada, bob, carol = hand.registers("ada"), hand.registers("bob"), hand.registers("carol")
    (other,) = hand.gets("contacts", "name", "-p", ada, carol, "Carol")
    (named,) = hand.gets("contacts", "name", "-p", ada, bob, carol)
    result = hand.types("send", "-p", ada, carol, "For whom?")
    assert result.exit_code == 2
    sentence = one_sentence(result)
    assert f"{bob} (account {named['account']}), {carol} (account {other['account']})" in sentence
    assert hand.gets("send", "-p", ada, other["account"], "For Carol.")[0]["to"] == carol
    assert (texts(hand, bob), texts(hand, carol)) == ([], ["For Carol."])


@pytest.mark.parametrize("words", [(), ("-",)])
def test_text_may_come_from_standard_input(hand: Hand, words: tuple[str, ...]) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, *words, stdin="two\nlines\n")
    assert texts(hand, bob) == ["two\nlines"]


def test_who_waits_for_delivered_gets_to_know_it(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    with SyncClient(folder_for(bob), [hand.server.url]):
        (said,) = hand.gets("send", "-p", ada, bob, "Hello", "--wait", "delivered")
    assert said["state"] == "delivered"


def test_who_does_not_wait_long_enough_is_told_how_far_it_got(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    result = hand.types("send", "-p", ada, bob, "Hello", "--wait", "delivered", "--timeout", "0.5")
    assert result.exit_code == 14
    assert "did not get further in time" in result.stdout


def test_without_a_server_a_message_is_kept_and_the_next_command_sends_it_once(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    offline = hand.types("send", "-p", ada, bob, "first", "--server", NOBODY)
    assert offline.exit_code == 14
    assert "safe in the outbox" in offline.stdout
    assert f"listen --profile {ada}" in offline.stdout
    hand.gets("send", "-p", ada, bob, "second")
    assert texts(hand, bob) == ["first", "second"]


def test_who_only_queues_does_not_wait_for_a_server(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (said,) = hand.gets("send", "-p", ada, bob, "later", "--wait", "queued", "--server", NOBODY)
    assert said["state"] == "pending"
    assert [each["state"] for each in hand.gets("history", "-p", ada, bob)] == ["pending"]
    hand.gets("listen", "-p", ada, "--until-empty")
    assert texts(hand, bob) == ["later"]


def test_a_recipient_that_does_not_exist_fails_with_its_own_exit_code(hand: Hand) -> None:
    result = hand.types("send", "-p", hand.registers("ada"), hand.name("nobody"), "a secret")
    assert result.exit_code == 13
    sentence = one_sentence(result)
    assert "unknown_recipient" in sentence
    assert "secret" not in sentence


def test_a_recipient_without_keys_is_told_as_such(hand: Hand) -> None:
    ada, new = hand.registers("ada"), registered_without_keys(hand)
    result = hand.types("send", "-p", ada, new, "Hello", "--json")
    assert result.exit_code == 14
    said = json.loads(result.stdout)
    why = f"{new} has registered, but has not published its keys yet: nothing can be encrypted for it."
    assert (said["state"], said["to"], said["why"]) == ("pending", new, why)
    assert why in hand.types("send", "-p", ada, new, "Hello").stdout


def test_a_reply_names_the_message_that_it_answers(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (asked,) = hand.gets("send", "-p", ada, bob, "Lunch?")
    hand.gets("listen", "-p", bob, "--until-empty")
    hand.gets("send", "-p", bob, ada, "Yes.", "--reply-to", asked["message_id"])
    heard = [each for each in hand.gets("listen", "-p", ada, "--until-empty") if each["type"] == "message"]
    assert [each["reply_to_message_id"] for each in heard] == [asked["message_id"]]
    elsewhere = asked["message_id"].replace(":0000", ":")
    hand.gets("send", "-p", bob, ada, "Yes.", "--reply-to", elsewhere)
    heard = [each for each in hand.gets("listen", "-p", ada, "--until-empty") if each["type"] == "message"]
    assert [each["reply_to_message_id"] for each in heard] == [elsewhere], "an id is a text, whatever its zeros"
    wrong = hand.types("send", "-p", bob, ada, "Yes.", "--reply-to", "that one")
    assert (wrong.exit_code, "not a message id" in one_sentence(wrong)) == (2, True)


def test_nothing_and_too_much_are_mistakes_of_usage(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    assert hand.types("send", "-p", ada, bob, stdin="").exit_code == 2
    large = hand.types("send", "-p", ada, bob, stdin="x" * 100_000)
    assert large.exit_code == 2
    assert "100007 bytes" in one_sentence(large)


def test_a_profile_has_to_exist_and_to_be_named_if_there_are_several(hand: Hand) -> None:
    none = hand.types("send", "bob", "Hello")
    assert (none.exit_code, "nightmail register" in one_sentence(none)) == (10, True)
    ada = hand.registers("ada")
    wrong = hand.types("send", "-p", "nowhere", "bob", "Hello")
    assert (wrong.exit_code, "no profile at" in one_sentence(wrong)) == (10, True)
    assert hand.gets("send", ada, "to myself, with the only profile there is", "--wait", "pending")
    bob = hand.registers("bob")
    several = hand.types("send", ada, "Hello")
    assert (several.exit_code, f"{ada}, {bob}" in one_sentence(several)) == (10, True)
    chosen = hand.types("send", bob, "Hello", NIGHTMAIL_PROFILE=ada)
    assert chosen.exit_code == 0


def test_a_profile_in_use_is_told_with_the_process_that_has_it(hand: Hand) -> None:
    ada = hand.registers("ada")
    profile = Profile(folder_for(ada))
    try:
        result = hand.types("send", "-p", ada, "bob", "Hello")
    finally:
        profile.close()
    assert result.exit_code == 3
    assert "in use by process" in one_sentence(result)


def test_a_damaged_profile_is_told_as_such(hand: Hand) -> None:
    ada = hand.registers("ada")
    (folder_for(ada) / "nightmail.db").write_bytes(b"not a database" * 500)
    result = hand.types("send", "-p", ada, "bob", "Hello")
    assert result.exit_code in {4, 5}
    assert "nightmail.db" in one_sentence(result)
