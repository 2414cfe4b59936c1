"""Files by commands: sent, listed, saved."""

from __future__ import annotations

from pathlib import Path

from nightmail.cli.file_words import size_words
from tests.cli.hand import NOBODY, Hand, one_sentence

DATA = bytes(range(256)) * 2_000


def a_file(folder: Path, name: str = "figures.csv") -> Path:
    path = folder / name
    path.write_bytes(DATA)
    return path


def test_a_file_is_sent_listed_and_saved(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    (sent,) = hand.gets("send", "-p", ada, bob, "--file", str(a_file(tmp_path)), "as promised")
    assert sent["state"] == "sent"
    heard = [line for line in hand.gets("listen", "-p", bob, "--until-empty") if line["type"] == "message"]
    described = {"name": "figures.csv", "type": "text/csv", "size": len(DATA)}
    (line,) = heard
    assert (line["text"], line["file"], "data_base64" in line) == ("as promised", described, False)
    (listed,) = hand.gets("media", "list", "-p", bob)
    assert (listed["message_id"], listed["file"], listed["state"]) == (sent["message_id"], described, "kept")
    (own,) = hand.gets("media", "list", bob, "-p", ada)
    assert (own["state"], own["path"]) == ("uploaded", str(tmp_path / "figures.csv"))
    folder = tmp_path / "saved"
    folder.mkdir()
    (saved,) = hand.gets("media", "save", "-p", bob, sent["message_id"], str(folder))
    assert saved == {"type": "saved", "message_id": sent["message_id"], "path": str(folder / "figures.csv")}
    assert (folder / "figures.csv").read_bytes() == DATA
    shown = hand.types("media", "list", "-p", bob).stdout
    assert "figures.csv" in shown
    assert "500 KiB" in shown
    assert "figures.csv\n" in hand.types("history", "-p", bob, ada).stdout
    assert [line["message_id"] for line in hand.gets("search", "-p", bob, "figures")] == [sent["message_id"]]


def test_what_cannot_be_saved_is_one_sentence(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    path = a_file(tmp_path)
    (sent,) = hand.gets("send", "-p", ada, bob, "-f", str(path))
    hand.gets("listen", "-p", bob, "--until-empty")
    exists = hand.types("media", "save", "-p", bob, sent["message_id"], str(path))
    assert (exists.exit_code, one_sentence(exists)[:12]) == (5, str(path)[:12])
    unknown = hand.types("media", "save", "-p", bob, "1001:1:00001:abcd", str(tmp_path))
    assert (unknown.exit_code, one_sentence(unknown)) == (2, "No message with a file has that id.")
    mentioned = hand.types("send", "-p", ada, bob, "-f", str(path), "--mention", "bob")
    assert mentioned.exit_code == 2
    assert hand.types("send", "-p", ada, bob, "-f", str(tmp_path / "nowhere")).exit_code == 2
    assert "There are no files." in hand.types("media", "list", "-p", hand.registers("cleo")).stdout


def test_a_file_waits_in_the_outbox_and_the_next_command_sends_it(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    waits = hand.types("send", "-p", ada, bob, "-f", str(a_file(tmp_path)), "--server", NOBODY, "--timeout", "5")
    assert waits.exit_code == 14
    hand.gets("listen", "-p", ada, "--until-empty")
    heard = [line for line in hand.gets("listen", "-p", bob, "--until-empty") if line["type"] == "message"]
    assert [line["file"]["name"] for line in heard] == ["figures.csv"]


def test_a_file_that_does_not_come_is_waited_for_no_longer_than_timeout_says(hand: Hand, tmp_path: Path) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("profile", "set", "-p", bob, "fetch_bytes", "0")
    (sent,) = hand.gets("send", "-p", ada, bob, "-f", str(a_file(tmp_path)))
    hand.gets("listen", "-p", bob, "--until-empty")
    assert [file["state"] for file in hand.gets("media", "list", "-p", bob)] == ["absent"], "as its profile says"
    words, copy = ("media", "save", "-p", bob, sent["message_id"]), tmp_path / "copy"
    late = hand.types(*words, str(copy), "--server", NOBODY, "--timeout", "0.2")
    assert (late.exit_code, "within 0.2 seconds" in one_sentence(late), copy.exists()) == (18, True, False)
    hand.gets(*words, str(copy))
    assert copy.read_bytes() == DATA


def test_sizes_have_three_digits() -> None:
    sizes = [0, 999, 1_000, 1_023, 500_000, 12_345_678, 1 << 40]
    assert [size_words(size) for size in sizes] == [
        "0 bytes", "999 bytes", "1.0 KiB", "1.0 KiB", "488 KiB", "11.8 MiB", "1.0 TiB",
    ]  # fmt: skip
