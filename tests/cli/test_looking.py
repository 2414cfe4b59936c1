"""History, search, contacts and blocking, from the command line."""

from __future__ import annotations

from tests.cli.hand import NOBODY, Hand, one_sentence


def a_talk(hand: Hand) -> tuple[str, str]:
    """Ada and Bob have written to each other, and both know it."""
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Lunch at the café?", "--wait", "sent")
    hand.gets("listen", "-p", bob, "--until-empty")
    hand.gets("send", "-p", bob, ada, "Rather dinner.", "--wait", "sent")
    hand.gets("listen", "-p", ada, "--until-empty")
    return ada, bob


def test_history_and_search_need_no_server(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    history = hand.gets("history", bob, "-p", ada, "--server", NOBODY)
    assert [(each["text"], each["own"], each.get("state")) for each in history] == [
        ("Lunch at the café?", True, "read"),
        ("Rather dinner.", False, None),
    ]
    (found,) = hand.gets("search", "-p", ada, "--server", NOBODY, "CAFE", "lun")
    assert [found["text"][start:end] for start, end in found["spans"]] == ["Lunch", "café"]
    assert hand.gets("search", "-p", ada, "dinner", "--with", "somebody") == []
    shown = hand.types("search", "-p", ada, "rather").stdout
    assert "Rather dinner." in shown
    assert bob in shown
    assert "Nothing was found" in hand.types("search", "-p", ada, "breakfast").stdout
    assert "✓✓" in hand.types("history", bob, "-p", ada).stdout


def test_looking_marks_nothing_as_read(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Hello")
    hand.gets("listen", "-p", bob, "--until-empty", "--peek")
    hand.gets("history", "-p", bob, ada)
    texts = [each["text"] for each in hand.gets("listen", "-p", bob, "--until-empty") if each["type"] == "message"]
    assert texts == ["Hello"]


def test_a_name_is_used_wherever_the_handle_is_meant(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (named,) = hand.gets("contacts", "name", bob, "Uncle Bob", "-p", ada)
    assert (named["handle"], named["name"], named["blocked"]) == (bob, "Uncle Bob", False)
    assert hand.gets("contacts", "list", "-p", ada) == [{**named, "verified": False}]
    assert len(hand.gets("history", "uncle bob", "-p", ada)) == 2
    assert "Uncle Bob: Rather dinner." in hand.types("history", bob, "-p", ada).stdout
    hand.gets("contacts", "name", "nobody", "uncle bob", "-p", ada)
    two = hand.types("history", "Uncle Bob", "-p", ada)
    assert (two.exit_code, "2 people" in one_sentence(two)) == (2, True)
    assert hand.gets("contacts", "forget", bob, "-p", ada) == [{"forgotten": True}]
    assert hand.gets("contacts", "forget", bob, "-p", ada) == [{"forgotten": False}]


def test_who_is_blocked_does_not_get_through_and_learns_nothing(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (blocked,) = hand.gets("block", bob, "-p", ada)
    assert blocked["blocked"]
    assert "blocked" in hand.types("contacts", "list", "-p", ada).stdout
    assert hand.gets("send", "-p", bob, ada, "Psst")[0]["state"] == "sent"
    hand.gets("listen", "-p", ada, "--until-empty")
    assert hand.gets("search", "-p", ada, "psst") == []
    (free,) = hand.gets("unblock", bob, "-p", ada)
    assert not free["blocked"]
    hand.gets("send", "-p", bob, ada, "Hello again")
    hand.gets("listen", "-p", ada, "--until-empty")
    assert len(hand.gets("search", "-p", ada, "again")) == 1


def test_blocking_without_a_server_is_told_and_changes_nothing(hand: Hand) -> None:
    ada = hand.registers("ada")
    result = hand.types("block", "bob", "-p", ada, "--server", NOBODY)
    assert result.exit_code == 11
    assert hand.gets("contacts", "list", "-p", ada) == []
