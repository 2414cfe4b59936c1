"""Safety numbers, from the command line."""

from __future__ import annotations

import pytest

from nightmail.cli import unlocking
from tests.cli.hand import Hand, one_sentence


def a_talk(hand: Hand) -> tuple[str, str]:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Hello")
    hand.gets("listen", "-p", bob, "--until-empty")
    return ada, bob


def test_both_see_the_same_number_and_what_one_says_about_it_stays_here(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (ours,), (theirs,) = hand.gets("verify-contact", bob, "-p", ada), hand.gets("verify-contact", ada, "-p", bob)
    assert ours["safety_number"] == theirs["safety_number"]
    assert (len(ours["safety_number"]), ours["safety_number"].isdigit()) == (60, True)
    assert (ours["verified"], ours["held"]) == (False, False)
    (said,) = hand.gets("verify-contact", bob, "-p", ada, "--verified", theirs["safety_number"])
    assert said["verified"]
    assert hand.gets("verify-contact", bob, "-p", ada)[0]["verified"]
    assert not hand.gets("verify-contact", ada, "-p", bob)[0]["verified"]
    hand.gets("contacts", "name", bob, "Bobby", "-p", ada)
    assert [each["verified"] for each in hand.gets("contacts", "list", "-p", ada)] == [True]
    assert "verified" in hand.types("contacts", "list", "-p", ada).stdout


def test_a_person_sees_twelve_groups_of_five_and_a_qr_code(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (known,) = hand.gets("verify-contact", bob, "-p", ada)
    shown = hand.types("verify-contact", bob, "-p", ada).stdout
    groups = [word for word in shown.split() if len(word) == 5 and word.isdigit()]
    assert "".join(groups) == known["safety_number"]
    assert "█" in shown
    assert "Not verified" in shown


def test_in_a_terminal_it_is_asked_at_once(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bob = a_talk(hand)
    monkeypatch.setattr(unlocking, "can_ask", lambda: True)
    unsure = hand.types("verify-contact", bob, "-p", ada, stdin="n\n")
    assert ("Do they see the same" in unsure.stdout, "Not verified" in unsure.stdout) == (True, True)
    assert "Verified." in hand.types("verify-contact", bob, "-p", ada, stdin="y\n").stdout
    assert "see the same" not in hand.types("verify-contact", bob, "-p", ada).stdout


def test_digits_are_taken_as_they_are_read_aloud(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    number = hand.gets("verify-contact", ada, "-p", bob)[0]["safety_number"]
    for wrong in (number[:-1], "60", number[:-1] + "x"):
        assert hand.types("verify-contact", bob, "-p", ada, "--verified", wrong).exit_code == 2
    other = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert hand.types("verify-contact", bob, "-p", ada, "--verified", other).exit_code == 17
    assert not hand.gets("verify-contact", bob, "-p", ada)[0]["verified"]
    read_aloud = " ".join(number[at : at + 5] for at in range(0, 60, 5))
    assert hand.gets("verify-contact", bob, "-p", ada, "--verified", read_aloud)[0]["verified"]


def test_without_a_key_it_says_what_to_do(hand: Hand) -> None:
    ada = hand.registers("ada")
    nothing = hand.types("verify-contact", "nobody", "-p", ada)
    assert (nothing.exit_code, "write to them first" in one_sentence(nothing)) == (2, True)


def test_a_new_phone_changes_the_number_and_nothing_goes_out_before_that_is_accepted(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (before,) = hand.gets("verify-contact", bob, "-p", ada)
    hand.gets("verify-contact", bob, "-p", ada, "--verified", before["safety_number"])
    (hand.folder / "pin").write_text("2468\n")
    hand.gets("lock", "set", "-p", bob, "--pin-file", str(hand.folder / "pin"))
    phone = str(hand.folder / "new phone")
    assert hand.types("register", bob, "--profile", phone, NIGHTMAIL_PIN="2468").exit_code == 0

    waits = hand.types("send", "-p", ada, bob, "Is it you?")
    assert waits.exit_code == 14
    assert "security code has changed" in waits.stdout
    assert f"verify-contact --profile {ada} {bob}" in waits.stdout
    (changed,) = hand.gets("verify-contact", bob, "-p", ada)
    assert (changed["verified"], changed["held"]) == (False, True)
    assert changed["safety_number"] != before["safety_number"]
    assert "wait until you --accept" in hand.types("verify-contact", bob, "-p", ada).stdout

    for word in ("--accept", "--verified"):
        former = hand.types("verify-contact", bob, "-p", ada, word, before["safety_number"])
        assert (former.exit_code, "is another one by now; nothing was accepted" in one_sentence(former)) == (17, True)
    assert hand.gets("verify-contact", bob, "-p", ada) == [changed]

    (agreed,) = hand.gets("verify-contact", bob, "-p", ada, "--accept", changed["safety_number"])
    assert (agreed["verified"], agreed["held"]) == (False, False)
    hand.gets("listen", "-p", ada, "--until-empty")
    texts = [each["text"] for each in hand.gets("listen", "-p", phone, "--until-empty") if each["type"] == "message"]
    assert texts == ["Is it you?"]
    assert hand.gets("verify-contact", ada, "-p", phone)[0]["safety_number"] == agreed["safety_number"]


def test_messages_to_an_unverified_contact_are_sent_and_the_change_is_reported(hand: Hand) -> None:
    ada, bob = a_talk(hand)
    (hand.folder / "pin").write_text("2468\n")
    hand.gets("lock", "set", "-p", bob, "--pin-file", str(hand.folder / "pin"))
    phone = str(hand.folder / "new phone")
    assert hand.types("register", bob, "--profile", phone, NIGHTMAIL_PIN="2468").exit_code == 0

    (said,) = hand.gets("send", "-p", ada, bob, "Is it you?")
    assert (said["state"], said["security_code_changed"]) == ("sent", True)
    (again,) = hand.gets("send", "-p", ada, bob, "It is.")
    assert "security_code_changed" not in again
    lines = hand.types("history", "-p", ada, bob).stdout.splitlines()
    assert ["has changed" in line for line in lines] == [False, True, False, False]
