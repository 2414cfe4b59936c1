"""Backups on the server, from the command line: a lost device comes back with what the server keeps."""

from __future__ import annotations

from tests.cli.commands.accounts.test_backup import code_file, error_of, texts
from tests.cli.hand import NOBODY, Hand, a_conversation


def test_a_lost_device_comes_back_with_what_the_server_keeps(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    (hand.folder / "pin").write_text("2468\n")
    hand.gets("lock", "set", "-p", ada, "--pin-file", str(hand.folder / "pin"))
    (made,) = hand.gets("backup", "create", "-p", ada, "--to", "server")
    secret = code_file(hand, made["recovery_code"])
    hand.gets("send", "-p", ada, bob, "Later.", "--wait", "sent")
    (second,) = hand.gets("backup", "create", "-p", ada)
    assert (second["on_server"], second["segments"], second["whole"]) == (True, 2, False)
    (kept,) = hand.gets("backup", "list", "-p", ada)
    assert (kept["parts"], kept["bytes"], kept["own"]) == (2, second["bytes"], True)
    assert hand.gets("backup", "list", "-p", bob) == []
    hand.gets("send", "-p", bob, ada, "Are you there?", "--wait", "sent")

    new = str(hand.folder / "new phone")
    assert hand.types("register", ada, "--profile", new, NIGHTMAIL_PIN="2468").exit_code == 0
    old = hand.types("backup", "list", "-p", ada)
    assert old.exit_code != 0
    (listed,) = hand.gets("backup", "list", "-p", new)
    assert {**listed, "own": True} == kept
    asked = hand.types("backup", "restore", "-p", new, "--from", "server", "--secret-file", secret)
    assert asked.exit_code == 2
    assert all(word in asked.stderr for word in ("made at", "messages", "--yes"))
    (restored,) = hand.gets("backup", "restore", "-p", new, "--from", "server", "--secret-file", secret, "--yes")
    assert (restored["restored"], restored["at"]) == (3, second["at"])
    assert texts(hand, new, bob) == ["Lunch at the café?", "Rather dinner.", "Later."]
    (again,) = hand.gets(
        "backup", "restore", "-p", new, "--from", "server", kept["id"][:8], "--secret-file", secret, "--yes"
    )
    assert again["restored"] == 0
    assert [file.name for file in (hand.folder / "new phone").glob("*.backup")] == []
    (gone,) = hand.gets("backup", "forget", "-p", new, kept["id"])
    assert gone == {"id": kept["id"], "forgotten": True}
    assert hand.gets("backup", "list", "-p", new) == []


def test_what_is_wrong_with_a_backup_on_the_server_is_said_in_a_sentence(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert hand.types("backup", "create", "-p", ada, "file", "--to", "server").exit_code == 2
    assert hand.types("backup", "restore", "-p", ada).exit_code == 2
    nothing = hand.types("backup", "restore", "-p", ada, "--from", "server")
    assert error_of(nothing)[0] == 5
    assert "the server has no backup of this account" in nothing.stderr.lower()
    assert hand.types("backup", "list", "-p", ada).stdout == "The server has no backups of this account.\n"
    assert error_of(hand.types("backup", "forget", "-p", ada, "feedfeed"))[0] == 2
    away = hand.types("backup", "create", "-p", ada, "--to", "server", "--server", NOBODY, "--timeout", "60")
    assert (away.exit_code, "could not be brought to the server" in away.stderr) == (5, True)
    assert "recovery code" in away.stdout
    (made,) = hand.gets("backup", "create", "-p", ada)
    assert "recovery_code" not in made
    (kept,) = hand.gets("backup", "list", "-p", ada)
    assert kept["bytes"] == made["bytes"]


def test_an_older_backup_is_refused_unless_the_person_insists(hand: Hand) -> None:
    ada, _bob = a_conversation(hand)
    file, older = hand.folder / "ada.backup", hand.folder / "older.backup"
    hand.gets("backup", "create", "-p", ada, str(file))
    older.write_bytes(file.read_bytes())
    hand.gets("backup", "create", "-p", ada)
    refused = error_of(hand.types("backup", "restore", "-p", ada, str(older), "--yes"))
    assert refused[0] == 2
    assert "newer" in refused[1]
    (restored,) = hand.gets("backup", "restore", "-p", ada, str(older), "--yes", "--older")
    assert restored["restored"] == 0
