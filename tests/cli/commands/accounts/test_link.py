"""A further device by a code: two machines, two commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightmail.cli.profiles import folder_for
from tests.cli.hand import Hand, one_sentence


@contextmanager
def a_new_device(*words: str) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A command that waits, and the code it shows."""
    command = [sys.executable, "-m", "nightmail", "link", *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_a_device_shows_a_code_the_primary_one_takes_it_in_and_both_have_what_comes(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    laptop = str(tmp_path / "laptop")
    with a_new_device(ada, "--profile", laptop, "--label", "laptop") as (process, shown):
        (taken,) = hand.gets("link", shown["code"], "--profile", ada, "--yes")
        said, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    linked = json.loads(said)
    assert (linked["device"], linked["handle"], taken["label"]) == (taken["device"], ada, "laptop")
    (listed,) = hand.gets("devices", "list", "--profile", laptop)
    assert [(each["label"], each["listed"]) for each in listed["devices"]] == [("terminal", True), ("laptop", True)]
    hand.gets("send", "-p", bob, ada, "to both of you")
    for profile in (ada, laptop):
        texts = [e["text"] for e in hand.gets("listen", "-p", profile, "--until-empty") if e["type"] == "message"]
        assert texts == ["to both of you"]


def test_what_asks_is_shown_before_it_is_taken_in(hand: Hand, tmp_path: Path) -> None:
    ada = hand.registers("ada")
    with a_new_device(ada, "--profile", str(tmp_path / "tablet"), "--label", "tablet") as (_, shown):
        asked = hand.types("link", "-", "--profile", ada, stdin=shown["code"])
        assert asked.exit_code == 2
        for words in ("tablet", "cli", shown["fingerprint"], "--yes"):
            assert words in asked.stderr
    (listed,) = hand.gets("devices", "list", "--profile", ada)
    assert len(listed["devices"]) == 1


def test_a_code_for_another_account_or_of_no_form_is_refused_in_words(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    with a_new_device(bob, "--profile", str(tmp_path / "other")) as (_, shown):
        wrong = hand.types("link", shown["code"], "--profile", ada, "--yes")
    assert (wrong.exit_code, bob in one_sentence(wrong)) == (2, True)
    broken = hand.types("link", shown["code"][:40], "--profile", ada, "--yes")
    assert (broken.exit_code, "code" in one_sentence(broken)) == (2, True)


def test_a_profile_that_is_a_device_already_is_not_linked_again(hand: Hand) -> None:
    ada = hand.registers("ada")
    again = hand.types("link", ada)
    assert (again.exit_code, "in use already" in one_sentence(again)) == (2, True)
    assert folder_for(ada).exists()


def test_nobody_comes_and_the_same_code_is_shown_again(hand: Hand, tmp_path: Path) -> None:
    ada = hand.registers("ada")
    words = ("link", ada, "--profile", str(tmp_path / "new"), "--timeout", "1", "--json")
    first, again = hand.types(*words), hand.types(*words)
    assert (first.exit_code, again.exit_code) == (14, 14)
    assert first.stdout == again.stdout


def test_a_device_is_renamed_and_removed(hand: Hand, tmp_path: Path) -> None:
    ada = hand.registers("ada")
    (made,) = hand.gets("devices", "link", str(tmp_path / "tablet"), "--profile", ada)
    hand.gets("devices", "rename", made["device"], "kitchen tablet", "--profile", ada)
    (listed,) = hand.gets("devices", "list", "--profile", ada)
    assert [each["label"] for each in listed["devices"]] == ["terminal", "kitchen tablet"]
    hand.gets("devices", "remove", made["device"], "--profile", ada)
    (listed,) = hand.gets("devices", "list", "--profile", ada)
    assert [each["label"] for each in listed["devices"]] == ["terminal"]


def test_an_account_moves_with_its_history_and_the_old_device_is_removed(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", bob, ada, "from before")
    hand.gets("listen", "-p", ada, "--until-empty")
    phone = str(tmp_path / "new phone")
    with a_new_device(ada, "--profile", phone, "--move") as (process, shown):
        (moved,) = hand.gets("migrate", shown["code"], "--profile", ada, "--yes")
        said, errors = process.communicate(timeout=300)
    assert (process.returncode, errors, json.loads(said)["device"]) == (0, "", moved["device"])
    assert [each["text"] for each in hand.gets("history", bob, "--profile", phone)] == ["from before"]
    assert len(hand.gets("search", "before", "--profile", phone)) == 1
    (listed,) = hand.gets("devices", "list", "--profile", phone)
    assert [each["device"] for each in listed["devices"]] == [moved["device"]]
    assert hand.types("devices", "list", "--profile", ada).exit_code in {12, 15}
    hand.gets("send", "-p", bob, ada, "to the new one")
    texts = [e["text"] for e in hand.gets("listen", "-p", phone, "--until-empty") if e["type"] == "message"]
    assert texts == ["to the new one"]
