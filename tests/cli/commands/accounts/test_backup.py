"""Backups from the command line: made, shown, restored after a device was lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from nightmail.cli import unlocking
from tests.cli.hand import Hand, a_conversation, one_sentence


def error_of(result: Result) -> tuple[int, str]:
    return result.exit_code, one_sentence(result)


def texts(hand: Hand, profile: str, peer: str) -> list[str]:
    return [each["text"] for each in hand.gets("history", "-p", profile, peer)]


def code_file(hand: Hand, code: str) -> str:
    file = hand.folder / "code.txt"
    file.write_text(f"{code.upper()}\n")
    return str(file)


def test_the_first_backup_shows_its_code_once_and_later_ones_add_what_is_new(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    file = hand.folder / "ada.backup"
    (first,) = hand.gets("backup", "create", "-p", ada, str(file))
    assert len(first.pop("recovery_code").split()) == 12
    assert (first["messages"], first["saved"], first["segments"], first["whole"]) == (2, 2, 1, True)
    assert (first["file"], first["bytes"]) == (str(file), file.stat().st_size)
    hand.gets("send", "-p", ada, bob, "Later.", "--wait", "sent")
    (second,) = hand.gets("backup", "create", "-p", ada)
    assert "recovery_code" not in second
    assert (second["messages"], second["segments"], second["whole"]) == (3, 2, False)
    (state,) = hand.gets("backup", "show", "-p", ada)
    assert (state["file"], state["messages"], state["every_ms"], state["kept_by"]) == (str(file), 3, 0, "recovery_code")


def test_a_backup_says_whose_it_is_and_from_when_before_it_is_restored(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = a_conversation(hand)
    file = str(hand.folder / "ada.backup")
    (made,) = hand.gets("backup", "create", "-p", ada, file)
    secret = code_file(hand, made["recovery_code"])
    (info,) = hand.gets("backup", "show", file, "--secret-file", secret)
    assert (info["handle"], info["at"], info["messages"], info["bytes"]) == (ada, made["at"], 2, made["bytes"])
    asked = hand.types("backup", "restore", "-p", ada, file)
    assert asked.exit_code == 2
    assert "--yes" in asked.stderr
    monkeypatch.setattr(unlocking, "can_ask", lambda: True)
    monkeypatch.setattr("nightmail.cli.commands.accounts.backup.can_ask", lambda: True)
    refused = hand.types("backup", "restore", "-p", ada, file, stdin="n\n")
    assert refused.exit_code == 1
    assert all(word in refused.stderr for word in ("backup of", ada, "made at", "size", "Restore it?"))
    assert texts(hand, ada, bob) == ["Lunch at the café?", "Rather dinner."]


def test_a_lost_device_comes_back_with_its_history(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    (hand.folder / "pin").write_text("2468\n")
    hand.gets("lock", "set", "-p", ada, "--pin-file", str(hand.folder / "pin"))
    file = str(hand.folder / "ada.backup")
    (made,) = hand.gets("backup", "create", "-p", ada, file)
    secret = code_file(hand, made["recovery_code"])
    new = str(hand.folder / "new phone")
    assert hand.types("register", ada, "--profile", new, NIGHTMAIL_PIN="2468").exit_code == 0
    (restored,) = hand.gets("backup", "restore", "-p", new, file, "--secret-file", secret, "--yes")
    assert (restored["restored"], restored["messages"], restored["at"]) == (2, 2, made["at"])
    assert texts(hand, new, bob) == ["Lunch at the café?", "Rather dinner."]
    assert [found["text"] for found in hand.gets("search", "-p", new, "dinner")] == ["Rather dinner."]
    (again,) = hand.gets("backup", "restore", "-p", new, file, "--secret-file", secret, "--yes")
    assert again["restored"] == 0


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (lambda data: data[:-1], 4, "is damaged"),
        (lambda data: data[:200] + b"x" + data[201:], 4, "is damaged"),
        (lambda data: b"hello", 4, "is not a backup"),
        (lambda data: data[:8] + b"\x09" + data[9:], 4, "newer version"),
    ],
)
def test_a_file_that_is_no_backup_any_more_is_refused_in_a_sentence(
    hand: Hand, spoil: Callable[[bytes], bytes], code: int, words: str
) -> None:
    ada, bob = a_conversation(hand)
    file = hand.folder / "ada.backup"
    (made,) = hand.gets("backup", "create", "-p", ada, str(file))
    secret = code_file(hand, made["recovery_code"])
    file.write_bytes(spoil(file.read_bytes()))
    for what in ("show", "restore"):
        exit_code, sentence = error_of(hand.types("backup", what, str(file), "-p", ada, "--secret-file", secret))
        assert (exit_code, words in sentence) == (code, True)
    assert texts(hand, ada, bob) == ["Lunch at the café?", "Rather dinner."]


def test_a_wrong_code_a_wrong_passphrase_and_the_wrong_account_change_nothing(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    file = str(hand.folder / "ada.backup")
    (made,) = hand.gets("backup", "create", "-p", ada, file)
    words = made["recovery_code"].split()
    wrong = {
        " ".join(words[:11]): "12 words",
        " ".join([*words[:11], "nightmail"]): "word 12 is not on the list",
        "abandon " * 11 + "about": "does not open this backup",
    }
    for text, said in wrong.items():
        result = hand.types("backup", "restore", "-p", bob, file, "--yes", NIGHTMAIL_BACKUP_SECRET=text)
        exit_code, sentence = error_of(result)
        assert (exit_code, said in sentence) == (16, True)
    exit_code, sentence = error_of(
        hand.types("backup", "restore", "-p", bob, file, "--yes", NIGHTMAIL_BACKUP_SECRET=made["recovery_code"])
    )
    assert (exit_code, "is a backup of" in sentence) == (2, True)
    nobody = hand.types("backup", "show", file)
    assert (nobody.exit_code, "--secret-file" in one_sentence(nobody)) == (16, True)


def test_a_passphrase_opens_a_backup_too(hand: Hand) -> None:
    ada, _ = a_conversation(hand)
    file, secret = str(hand.folder / "ada.backup"), hand.folder / "horse.txt"
    secret.write_text("correct horse\n")
    (made,) = hand.gets("backup", "create", "-p", ada, file, "--by", "passphrase", "--secret-file", str(secret))
    assert "recovery_code" not in made
    assert hand.gets("backup", "show", file, "--secret-file", str(secret))[0]["kept_by"] == "passphrase"
    secret.write_text("correct house\n")
    assert hand.types("backup", "show", file, "--secret-file", str(secret)).exit_code == 16
    (again,) = hand.gets("backup", "create", "-p", ada, file, "--by", "code")
    assert again["whole"]
    assert len(again["recovery_code"].split()) == 12


def test_how_often_a_running_client_makes_backups_is_set_and_shown(hand: Hand) -> None:
    ada, _ = a_conversation(hand)
    file = hand.folder / "ada.backup"
    nothing = hand.types("backup", "schedule", "-p", ada, "1d")
    assert (nothing.exit_code, "make a first one" in one_sentence(nothing)) == (2, True)
    hand.gets("backup", "create", "-p", ada, str(file))
    (state,) = hand.gets("backup", "schedule", "-p", ada, "1d")
    assert state["every_ms"] == 86_400_000
    assert hand.types("backup", "schedule", "-p", ada, "10s").exit_code == 2
    assert hand.gets("backup", "schedule", "-p", ada, "off")[0]["every_ms"] == 0


def test_a_target_that_cannot_be_written_is_named(hand: Hand) -> None:
    ada, _ = a_conversation(hand)
    exit_code, sentence = error_of(hand.types("backup", "create", "-p", ada, str(hand.folder / "no" / "file")))
    assert (exit_code, "cannot be written" in sentence) == (5, True)
    assert hand.types("backup", "create", "-p", ada).exit_code == 2
    assert json.loads(hand.types("backup", "show", "-p", ada, "--json").stdout)["file"] is None
