"""`nightmail history` and `nightmail search`."""

from __future__ import annotations

from tests.cli.hand import NOBODY, Hand, a_conversation


def test_history_and_search_need_no_server(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
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
    assert "Nothing found" in hand.types("search", "-p", ada, "breakfast").stdout
    assert "✓✓" in hand.types("history", bob, "-p", ada).stdout


def test_looking_marks_nothing_as_read(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Hello")
    hand.gets("listen", "-p", bob, "--until-empty", "--peek")
    hand.gets("history", "-p", bob, ada)
    texts = [each["text"] for each in hand.gets("listen", "-p", bob, "--until-empty") if each["type"] == "message"]
    assert texts == ["Hello"]


def test_without_messages_it_says_so(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert hand.types("history", "nobody", "-p", ada).stdout == "No messages with nobody on this device.\n"
    assert hand.gets("history", "nobody", "-p", ada) == []
