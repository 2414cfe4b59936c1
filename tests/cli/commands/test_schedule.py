"""`nightmail schedule`, `scheduled`, `cancel` and `deadletters`."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightmail.core.state import NEWEST_FOLD
from tests.cli.hand import Hand, one_sentence
from tests.outlets.hook import answering
from tests.server.rig import WAIT_S, Town, serving

REFUSED, PENDING = 12, 14


@pytest.fixture
def town(hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    """A server that calls webhooks on this machine."""
    allowed = {"schedule__webhooks": "accounts", "schedule__private_networks": "127.0.0.1"}
    with serving(tmp_path / "node", NEWEST_FOLD, **allowed) as made:
        monkeypatch.setenv("NIGHTMAIL_SERVER", f"http://127.0.0.1:{made.port}")
        yield made


def until(hand: Hand, ident: str, state: str, *profile: str) -> None:
    patience = threading.Event()
    for _ in range(WAIT_S * 20):
        (seen,) = hand.gets("scheduled", ident, *profile)
        if seen["state"] == state:
            return
        patience.wait(0.05)
    raise AssertionError(state)


def test_a_webhook_is_called_later_unless_that_is_cancelled(hand: Hand, town: Town) -> None:
    hand.registers("ada")
    with answering() as hook:
        (soon,) = hand.gets("schedule", hook.url, '{"a": 1}', "--in", "1s")
        (later,) = hand.gets("schedule", hook.url, '"Hello"', "--in", "1h")
        assert later["deliver_at_ms"] - soon["deliver_at_ms"] > 3_000_000
        assert hand.gets("cancel", later["message_id"]) == [{"message_id": later["message_id"], "cancelled": True}]
        until(hand, soon["message_id"], "delivered")
    (call,) = hook.calls
    assert (call.json, call.headers["webhook-id"]) == ({"a": 1}, soon["message_id"])
    states = {each["message_id"]: each["state"] for each in hand.gets("scheduled")}
    assert states == {soon["message_id"]: "delivered", later["message_id"]: "cancelled"}
    said = hand.types("scheduled").stdout
    assert "delivered" in said
    assert hand.types("scheduled", "--state", "failed").stdout == "Nothing is failed.\n"
    assert "sent already" in one_sentence(hand.types("cancel", soon["message_id"]))


def test_a_message_is_delivered_later_unless_that_is_cancelled(hand: Hand, town: Town) -> None:
    bob, ada = hand.registers("bob"), hand.registers("ada")
    hand.gets("listen", "--profile", bob, "--until-empty")
    (soon,) = hand.gets("schedule", bob, "Happy birthday", "--in", "1s", "--profile", ada)
    (later,) = hand.gets("schedule", bob, "Never mind", "--in", "1h", "--profile", ada)
    assert {name: soon[name] for name in ("state", "to")} == {"state": "pending", "to": bob}
    listed = hand.gets("scheduled", "--state", "pending", "--profile", ada)
    assert ("Never mind", bob) in [(each["text"], each["to"]) for each in listed]
    assert "Never mind" in hand.types("scheduled", "--profile", ada).stdout
    (cancelled,) = hand.gets("cancel", later["message_id"], "--profile", ada)
    assert cancelled == {"message_id": later["message_id"], "cancelled": True}
    until(hand, soon["message_id"], "delivered", "--profile", ada)
    events = hand.gets("listen", "--profile", bob, "--until-empty")
    assert [event["text"] for event in events if event["type"] == "message"] == ["Happy birthday"]
    hand.gets("listen", "--profile", ada, "--until-empty")
    history = hand.gets("history", bob, "--profile", ada)
    assert [(each["text"], each["message_id"]) for each in history] == [("Happy birthday", soon["message_id"])]
    refused = hand.types("cancel", soon["message_id"], "--profile", ada)
    assert (refused.exit_code, one_sentence(refused)) == (REFUSED, "It was sent already.")


def test_without_a_server_a_message_for_later_waits_in_the_profile(
    hand: Hand, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = hand.registers("bob")
    ada = hand.registers("ada")
    server = f"http://127.0.0.1:{town.port}"
    monkeypatch.setenv("NIGHTMAIL_SERVER", "http://127.0.0.1:9")
    result = hand.types("schedule", bob, "Later", "--in", "1h", "--profile", ada, "--json")
    assert result.exit_code == PENDING
    (queued,) = hand.gets("scheduled", "--profile", ada)
    assert (queued["state"], queued["text"]) == ("queued", "Later")
    monkeypatch.setenv("NIGHTMAIL_SERVER", server)
    hand.gets("listen", "--profile", ada, "--until-empty")
    (listed,) = hand.gets("scheduled", "--profile", ada)
    assert (listed["state"], listed["text"]) == ("pending", "Later")


def test_what_cannot_be_meant_is_refused_in_a_sentence(hand: Hand, town: Town) -> None:
    hand.registers("ada")
    for words, code in (
        (("https://x.test/", "1"), 2),
        (("https://x.test/", "1", "--in", "1h", "--at", "2099-01-01T00:00:00Z"), 2),
        (("https://x.test/", "Hello", "--in", "1h"), 2),
        (("https://x.test/", "1", "--in", "never"), 2),
        (("bob", "Hello"), 2),
        (("bob", "Hello", "--at", "tomorrow"), 2),
        (("bob", "Hello", "--at", "2099-01-01T00:00:00"), 2),
        (("bob", "Hello", "--at", "2020-01-01T00:00:00Z"), REFUSED),
        (("bob", "Hello", "--in", "15d"), REFUSED),
        (("https://x.test/", "1", "--at", "tomorrow"), REFUSED),
        (("https://x.test/", "1", "--at", "2020-01-01T00:00:00Z"), REFUSED),
        (("https://10.0.0.1/", "1", "--in", "1h"), REFUSED),
    ):
        result = hand.types("schedule", *words)
        assert (result.exit_code, bool(one_sentence(result))) == (code, True), words


def test_an_operator_looks_at_dead_letters_and_settles_them(hand: Hand, town: Town) -> None:
    hand.registers("ada")
    data = ("--data", str(town.node.heart.folder))
    assert hand.gets("deadletters", "list", *data) == []
    assert "no dead letters" in hand.types("deadletters", "list", *data).stdout
    with answering(404) as hook:
        idents = [hand.gets("schedule", hook.url, f'"{n}"', "--in", "1s")[0]["message_id"] for n in range(3)]
        for ident in idents:
            until(hand, ident, "failed")
        assert hand.gets("deadletters", "list", *data) == [{"error": "webhook http_404", "count": 3}]
        letters = hand.gets("deadletters", "list", "webhook http_404", *data)
        (newest, middle, oldest) = letters
        assert hand.gets("deadletters", "show", newest["id"], *data) == [newest]
        assert "http_404" in hand.types("deadletters", "show", newest["id"], *data).stdout
        hook.statuses = [204]
        (replayed,) = hand.gets("deadletters", "replay", oldest["id"], *data)
        assert replayed["status"] == "replayed"
        until(hand, oldest["original_message"]["msg_id"], "delivered")
        (discarded,) = hand.gets("deadletters", "discard", middle["id"], *data)
        assert discarded["status"] == "discarded"
        assert "is settled" in one_sentence(hand.types("deadletters", "replay", middle["id"], *data))
        assert hand.gets("deadletters", "replay", "--error", "webhook http_404", "--yes", *data) == [{"settled": 1}]
        until(hand, newest["original_message"]["msg_id"], "delivered")


def test_which_letters_are_meant_must_be_said(hand: Hand, town: Town) -> None:
    data = ("--data", str(town.node.heart.folder))
    assert hand.types("deadletters", "replay", *data).exit_code == 2
    assert hand.types("deadletters", "discard", "0-1", "--error", "x", *data).exit_code == 2
    assert hand.types("deadletters", "discard", "--error", "x", *data).exit_code == 2
    assert hand.types("deadletters", "show", "0-1", *data).exit_code == REFUSED


def test_an_outlet_is_a_process_of_its_own(hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {"schedule__webhooks": "accounts", "schedule__private_networks": "127.0.0.1"}
    folder = tmp_path / "with-outlet"
    with serving(folder, NEWEST_FOLD, outlet__runs_in="processes", **allowed) as town, answering() as hook:
        monkeypatch.setenv("NIGHTMAIL_SERVER", f"http://127.0.0.1:{town.port}")
        hand.registers("ada")
        (made,) = hand.gets("schedule", hook.url, '{"a": 1}', "--in", "1s")
        until(hand, made["message_id"], "processing")
        command = (sys.executable, "-m", "nightmail", "outlet", "--data", str(folder))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                until(hand, made["message_id"], "delivered")
            finally:
                process.terminate()
        assert process.returncode == 0
    assert [call.json for call in hook.calls] == [{"a": 1}]
