"""`nightmail block` and `nightmail unblock`."""

from __future__ import annotations

from tests.cli.hand import NOBODY, Hand, a_conversation, one_sentence


def test_who_is_blocked_does_not_get_through_and_learns_nothing(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    (blocked,) = hand.gets("block", bob, "-p", ada)
    assert blocked["blocked"]
    assert "blocked" in hand.types("contacts", "list", "-p", ada).stdout
    hand.gets("contacts", "name", "-p", ada, ada, "me")
    assert hand.gets("contacts", "blocked", "-p", ada) == [{**blocked, "verified": False}]
    assert hand.gets("send", "-p", bob, ada, "Psst")[0]["state"] == "sent"
    hand.gets("listen", "-p", ada, "--until-empty")
    assert hand.gets("search", "-p", ada, "psst") == []
    (free,) = hand.gets("unblock", bob, "-p", ada)
    assert not free["blocked"]
    assert hand.types("contacts", "blocked", "-p", ada).stdout == "Nobody is blocked.\n"
    hand.gets("send", "-p", bob, ada, "Hello again")
    hand.gets("listen", "-p", ada, "--until-empty")
    assert len(hand.gets("search", "-p", ada, "again")) == 1


def test_nobody_can_be_blocked_who_is_not_there(hand: Hand) -> None:
    ada = hand.registers("ada")
    result = hand.types("block", hand.name("nobody"), "-p", ada)
    assert (result.exit_code, "Check the spelling" in one_sentence(result)) == (12, True)
    assert hand.gets("contacts", "list", "-p", ada) == []


def test_nobody_blocks_themselves_and_unblocking_a_stranger_makes_no_contact(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    own = hand.types("block", ada, "-p", ada)
    assert (own.exit_code, "your own account" in one_sentence(own)) == (2, True)
    assert hand.types("unblock", bob, "-p", ada).stdout == f"{bob} is not blocked.\n"
    assert hand.gets("contacts", "list", "-p", ada) == []


def test_blocking_without_a_server_is_told_and_changes_nothing(hand: Hand) -> None:
    ada = hand.registers("ada")
    result = hand.types("block", "bob", "-p", ada, "--server", NOBODY)
    assert result.exit_code == 11
    assert hand.gets("contacts", "list", "-p", ada) == []
