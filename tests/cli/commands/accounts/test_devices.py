"""`nightmail devices`."""

from __future__ import annotations

from tests.cli.hand import NOBODY, Hand, one_sentence


def test_a_linked_device_gets_what_is_sent_afterwards_and_a_removed_one_does_not(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (linked,) = hand.gets("devices", "link", "-p", bob, "./laptop", "--label", "laptop")
    assert linked.keys() == {"handle", "device", "profile", "servers"}
    (seen,) = hand.gets("devices", "list", "-p", bob)
    assert [(each["label"], each["listed"]) for each in seen["devices"]] == [("terminal", True), ("laptop", True)]
    assert seen["this"] == seen["devices"][0]["device"]
    assert all(each["last_seen"] for each in seen["devices"]), "both were connected when the one linked the other"
    hand.gets("send", "-p", ada, bob, "Hello, both.")
    for profile in (bob, "./laptop"):
        listened = hand.gets("listen", "-p", profile, "--until-empty")
        assert [each["text"] for each in listened if each["type"] == "message"] == ["Hello, both."]
    assert hand.gets("devices", "remove", "-p", bob, linked["device"]) == [{"removed": linked["device"]}]
    assert linked["device"] not in hand.types("devices", "list", "-p", bob).stdout


def test_people_are_told_in_a_table_and_what_to_do_next(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert "listen --profile ./laptop" in hand.types("devices", "link", "-p", ada, "./laptop").stdout
    said = hand.types("devices", "list", "-p", ada).stdout
    assert "(this one)" in said
    assert "last seen" in said
    assert "second device" in said


def test_a_folder_that_is_a_device_already_is_not_linked_again(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    result = hand.types("devices", "link", "-p", ada, bob)
    assert result.exit_code == 2
    assert "another folder" in one_sentence(result)


def test_a_device_that_is_none_of_the_accounts_cannot_be_removed(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert hand.types("devices", "remove", "-p", ada, "not hex").exit_code == 2
    result = hand.types("devices", "remove", "-p", ada, "abc")
    assert result.exit_code == 12
    one_sentence(result)


def test_without_a_server_it_says_so(hand: Hand) -> None:
    result = hand.types("devices", "list", "-p", hand.registers("ada"), "--server", NOBODY)
    assert result.exit_code == 11
    assert "nightmail serve" in one_sentence(result)
