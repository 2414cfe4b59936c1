"""`nightmail account`."""

from __future__ import annotations

from tests.cli.hand import Hand, one_sentence


def test_the_settings_of_an_account_can_be_seen_and_changed(hand: Hand) -> None:
    ada = hand.registers("ada")
    (seen,) = hand.gets("account", "show", "-p", ada)
    assert seen == {
        "account": seen["account"], "handle": ada, "read_receipts": True, "locked": False, "devices": 1,
        "this": seen["this"],
    }  # fmt: skip
    assert hand.gets("account", "read-receipts", "off", "-p", ada) == [{"read_receipts": False}]
    assert hand.gets("account", "show", "-p", ada) == [{**seen, "read_receipts": False}]
    assert "read receipts  off" in hand.types("account", "show", "-p", ada).stdout
    hand.types("account", "read-receipts", "on", "-p", ada)
    assert hand.gets("account", "show", "-p", ada) == [seen]


def test_without_read_receipts_a_sender_is_not_told_that_a_message_was_read(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("account", "read-receipts", "off", "-p", bob)
    hand.gets("send", "-p", ada, bob, "Hello")
    hand.gets("listen", "-p", bob, "--until-empty")
    hand.gets("listen", "-p", ada, "--until-empty")
    assert [each["state"] for each in hand.gets("history", "-p", ada, bob)] == ["delivered"]


def test_a_device_leaves_and_the_account_stays(hand: Hand) -> None:
    ada = hand.registers("ada")
    (linked,) = hand.gets("devices", "link", "-p", ada, "laptop")
    assert hand.gets("account", "leave", "-p", "laptop", "--yes") == [{"handle": ada, "removed": linked["device"]}]
    (left,) = hand.gets("devices", "list", "-p", ada)
    assert linked["device"] not in [each["device"] for each in left["devices"]]
    assert hand.types("listen", "-p", "laptop", "--until-empty").exit_code == 15


def test_the_primary_device_cannot_leave(hand: Hand) -> None:
    ada = hand.registers("ada")
    result = hand.types("account", "leave", "-p", ada, "--yes")
    assert (result.exit_code, "primary device" in one_sentence(result)) == (2, True)
    assert hand.gets("account", "show", "-p", ada)[0]["devices"] == 1


def test_an_account_is_closed_only_after_a_confirmation(hand: Hand) -> None:
    ada = hand.registers("ada")
    for words in (("close",), ("leave",)):
        result = hand.types("account", *words, "-p", ada)
        assert (result.exit_code, "--yes" in one_sentence(result)) == (2, True)
    assert hand.gets("account", "close", "-p", ada, "--yes") == [{"handle": ada, "closed": True}]
    assert hand.types("listen", "-p", ada, "--until-empty").exit_code == 15
