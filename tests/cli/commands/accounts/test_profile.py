"""What keeps a profile sealed, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.cli import unlocking
from nightmail.cli.profiles import folder_for
from tests.cli.hand import Hand, one_sentence


def words(folder: Path, text: str) -> str:
    file = folder / f"{text}.txt"
    file.write_text(f"{text}\n")
    return str(file)


def test_a_profile_is_sealed_without_asking_anybody(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert hand.gets("profile", "show") == [{"profile": str(folder_for(ada)), "kept_by": "key_file"}]


def test_settings_of_a_profile_are_listed_changed_and_refused(hand: Hand) -> None:
    hand.registers("ada")
    window = {"name": "window", "value": 256, "default": 256, "low": 1, "high": 256}
    assert hand.gets("profile", "settings")[0] == window
    assert hand.gets("profile", "set", "window", "16") == [{**window, "value": 16}]
    assert hand.gets("profile", "settings")[0] == {**window, "value": 16}
    refused = hand.types("profile", "set", "window", "0")
    assert (refused.exit_code, "from 1 to 256" in one_sentence(refused)) == (2, True)
    assert hand.gets("profile", "set", "window") == [window]


def test_a_profile_with_a_passphrase_opens_with_it_alone(hand: Hand) -> None:
    ada, horse = hand.name("ada"), words(hand.folder, "horse")
    assert hand.types("register", ada, "--passphrase", "--passphrase-file", horse).exit_code == 0
    assert hand.types("send", ada, "Hello", "--wait", "queued", "--passphrase-file", horse).exit_code == 0
    assert hand.types("send", ada, "Hello", "--wait", "queued", NIGHTMAIL_PASSPHRASE="horse").exit_code == 0
    assert hand.types("send", ada, "Hello", "--wait", "queued", NIGHTMAIL_PASSPHRASE_FILE=horse).exit_code == 0
    nobody = hand.types("send", ada, "Hello")
    assert (nobody.exit_code, "--passphrase-file" in one_sentence(nobody)) == (16, True)
    wrong = hand.types("send", ada, "Hello", NIGHTMAIL_PASSPHRASE="house")
    assert (wrong.exit_code, "does not open" in one_sentence(wrong)) == (16, True)


def test_a_passphrase_is_asked_for_twice_when_it_is_new(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlocking, "can_ask", lambda: True)
    ada = hand.name("ada")
    differ = hand.types("register", ada, "--passphrase", stdin="horse\nhouse\n")
    assert (differ.exit_code, folder_for(ada).exists()) == (16, False)
    made = hand.types("register", ada, "--passphrase", stdin="horse\nhorse\n")
    assert (made.exit_code, "horse" in made.output) == (0, False)
    assert hand.types("send", ada, "Hello", "--wait", "queued", stdin="horse\n").exit_code == 0


def test_what_keeps_a_profile_can_be_changed(hand: Hand) -> None:
    ada = hand.registers("ada")
    horse, house = words(hand.folder, "horse"), words(hand.folder, "house")
    assert hand.gets("profile", "keep", "passphrase", "--new-passphrase-file", horse)[0]["kept_by"] == "passphrase"
    assert hand.types("profile", "keep", "passphrase", "--new-passphrase-file", house).exit_code == 16
    changed = hand.types(
        "profile", "keep", "passphrase", "--passphrase-file", horse, "--new-passphrase-file", house
    )  # fmt: skip
    assert changed.exit_code == 0
    assert hand.types("send", ada, "Hello", "--wait", "queued", NIGHTMAIL_PASSPHRASE="horse").exit_code == 16
    stick = str(hand.folder / "stick.key")
    back = hand.types("profile", "keep", "key-file", "--file", stick, NIGHTMAIL_PASSPHRASE="house")
    assert back.exit_code == 0
    assert hand.types("send", ada, "Hello", "--wait", "queued").exit_code == 0


def test_a_key_file_again_loses_nothing(hand: Hand) -> None:
    ada = hand.registers("ada")
    for _ in range(2):
        assert hand.gets("profile", "keep", "key-file")[0]["kept_by"] == "key_file"
        assert hand.types("send", ada, "Hello", "--wait", "queued").exit_code == 0


def test_only_one_thing_keeps_a_profile(hand: Hand) -> None:
    both = hand.types("register", hand.name("ada"), "--passphrase", "--key-file", "x.key")
    assert (both.exit_code, "one of" in both.stderr) == (2, True)
