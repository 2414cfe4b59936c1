"""`nightmail privacy`."""

from __future__ import annotations

import pytest

from nightmail.testing import running_server
from tests.cli.hand import NOBODY, Hand, a_conversation, one_sentence


def test_every_privacy_setting_is_shown_and_how_to_change_it(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    at_first = {"read_receipts": True, "last_seen": "contacts", "blocked": [], "contacts": []}
    assert hand.gets("privacy", "-p", ada) == [at_first]
    (named,) = hand.gets("contacts", "name", hand.registers("mum"), "Mum", "-p", ada)
    (blocked,) = hand.gets("block", bob, "-p", ada)
    hand.gets("account", "read-receipts", "off", "-p", ada)
    hand.gets("privacy", "last-seen", "nobody", "-p", ada)
    shown = {"read_receipts": False, "last_seen": "nobody", "blocked": [blocked], "contacts": [blocked, named]}
    assert hand.gets("privacy", "-p", ada) == [shown]
    said = " ".join(hand.types("privacy", "-p", ada).stdout.split())
    receipts = "read receipts off: nobody sees when you have read a message, and you do not see when others have"
    for part in (
        f"{receipts} change it: nightmail account read-receipts on|off",
        "last seen shown to nobody change it: nightmail privacy last-seen everyone|contacts|nobody",
        f"blocked {bob} change it: nightmail block NAME, unblock NAME",
        f"saved contacts {bob}, Mum change it: nightmail contacts name HANDLE NAME, contacts forget NAME",
    ):
        assert part in said


def test_without_a_server_nothing_is_guessed(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert hand.types("privacy", "-p", ada, "--server", NOBODY).exit_code == 11


def test_contacts_who_see_the_last_seen_are_not_only_the_saved_ones_and_that_is_said(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    assert hand.gets("presence", ada, "-p", bob)[0]["presence"] == "offline"
    said = " ".join(hand.types("privacy", "-p", ada).stdout.split())
    assert "last seen shown to contacts: the people whom you have written to or given a name change it" in said
    assert "saved contacts nobody change it" in said
    chosen = " ".join(hand.types("privacy", "last-seen", "contacts", "-p", ada).stdout.split())
    assert chosen == (
        "Online and last seen are shown to contacts: the people whom you have written to or given a name."
    )


def test_the_other_settings_are_shown_by_a_server_without_presence(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server({"presence.enabled": False}) as server:
        monkeypatch.setenv("NIGHTMAIL_SERVER", server.url)
        ada = hand.registers("ada")
        shown = {"read_receipts": True, "last_seen": None, "blocked": [], "contacts": []}
        assert hand.gets("privacy", "-p", ada) == [shown]
        said = " ".join(hand.types("privacy", "-p", ada).stdout.split())
        assert "last seen not shown to anybody by this server change it" in said
        refused = hand.types("privacy", "last-seen", "nobody", "-p", ada)
        assert one_sentence(refused) == "This server does not tell who is online or was last seen when."
