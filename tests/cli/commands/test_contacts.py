"""`nightmail contacts`."""

from __future__ import annotations

from tests.cli.hand import Hand, a_conversation, one_sentence


def test_a_name_is_used_wherever_the_handle_is_meant(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    (named,) = hand.gets("contacts", "name", bob, "Uncle Bob", "-p", ada)
    assert (named["handle"], named["name"], named["blocked"]) == (bob, "Uncle Bob", False)
    assert hand.gets("contacts", "list", "-p", ada) == [{**named, "verified": False}]
    assert len(hand.gets("history", "uncle bob", "-p", ada)) == 2
    assert "Uncle Bob: Rather dinner." in hand.types("history", bob, "-p", ada).stdout
    hand.gets("contacts", "name", "nobody", "uncle bob", "-p", ada)
    two = hand.types("history", "Uncle Bob", "-p", ada)
    assert (two.exit_code, f"{bob} (account {named['account']}), nobody (account" in one_sentence(two)) == (2, True)
    assert hand.gets("contacts", "forget", bob, "-p", ada) == [{"forgotten": True}]
    assert hand.gets("contacts", "forget", bob, "-p", ada) == [{"forgotten": False}]


def test_a_contact_is_renamed_by_its_name_and_two_of_one_name_by_their_handles(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    hand.gets("contacts", "name", bob, "Mum", "-p", ada)
    (renamed,) = hand.gets("contacts", "name", "mum", "Mother", "-p", ada)
    assert (renamed["handle"], renamed["name"]) == (bob, "Mother")
    hand.gets("contacts", "name", "nobody", "Mother", "-p", ada)
    assert hand.types("contacts", "name", "Mother", "Ma", "-p", ada).exit_code == 2
    hand.gets("contacts", "name", "nobody", "Somebody", "-p", ada)
    assert [each["name"] for each in hand.gets("contacts", "list", "-p", ada)] == ["Mother", "Somebody"]
    (by_number,) = hand.gets("contacts", "name", renamed["account"], "Ma", "-p", ada)
    assert (by_number["handle"], by_number["name"]) == (bob, "Ma")


def test_a_name_cannot_be_empty_nor_mean_a_contact_without_one(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    hand.gets("block", bob, "-p", ada)
    for words in (("contacts", "name", bob, " "), ("send", "", "Hello"), ("history", "")):
        result = hand.types(*words, "-p", ada)
        assert (result.exit_code, "cannot be empty" in one_sentence(result)) == (2, True)
    assert hand.gets("contacts", "blocked", "-p", ada)[0]["name"] == ""
