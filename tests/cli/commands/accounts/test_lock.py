"""`nightmail lock`, and registering with what it asks for."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from nightmail.cli import pins
from nightmail.cli.commands.accounts import register
from tests.cli.hand import Hand, one_sentence
from tests.outlets.hook import WRITTEN, Hook, answering
from tests.server.rig import serving


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody can be asked."""
    for module in (pins, register):
        monkeypatch.setattr(module, "can_ask", lambda: True)


def again(hand: Hand, handle: str) -> tuple[str, ...]:
    return "register", handle, "--profile", str(hand.folder / "new phone")


def test_a_pin_is_set_without_echo_and_opens_the_account_for_a_new_device(hand: Hand, terminal: None) -> None:
    ada = hand.registers("ada")
    locked = hand.types("lock", "set", stdin="2468\n2468\n")
    assert locked.exit_code == 0
    assert "The PIN is set" in locked.stdout
    assert "2468" not in locked.output
    assert hand.gets("devices", "list")[0]["locked"] is True
    wrong = hand.types(*again(hand, ada), "--pin", stdin="1111\n")
    assert wrong.exit_code == 12
    assert "not the PIN; tries left: 9" in wrong.stderr
    assert not (hand.folder / "new phone").exists()
    assert hand.types(*again(hand, ada), "--pin", stdin="2468\n").exit_code == 0
    gone = hand.types("devices", "list", "--profile", ada)
    assert gone.exit_code == 12
    assert hand.gets("lock", "remove", "--profile", str(hand.folder / "new phone")) == [
        {"handle": ada, "locked": False}
    ]


def test_two_pins_that_differ_set_nothing(hand: Hand, terminal: None) -> None:
    hand.registers("ada")
    assert hand.types("lock", "set", stdin="2468\n1357\n").exit_code == 16
    assert hand.gets("devices", "list")[0]["locked"] is False


def test_where_nobody_can_be_asked_a_pin_comes_from_a_file_or_the_environment(hand: Hand) -> None:
    ada = hand.registers("ada")
    assert "standard input is not a terminal" in one_sentence(hand.types("lock", "set"))
    (hand.folder / "pin").write_text("2468\n")
    assert hand.gets("lock", "set", "--pin-file", str(hand.folder / "pin")) == [{"handle": ada, "locked": True}]
    assert hand.types(*again(hand, ada), NIGHTMAIL_PIN="2468").exit_code == 0


# --- where the server verifies ----------------------------------------------------------------


@pytest.fixture(scope="module")
def hook() -> Generator[Hook]:
    with answering() as made:
        yield made


@pytest.fixture(scope="module")
def verifying(hook: Hook, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    settings = {
        "accounts__verification": "webhook",
        "accounts__webhook_url": hook.url,
        "accounts__webhook_secret": WRITTEN,
        "accounts__webhook_private": True,
    }
    with serving(tmp_path_factory.mktemp("node"), **settings) as town:
        yield f"http://127.0.0.1:{town.port}"


def test_a_code_is_sent_and_said(hand: Hand, hook: Hook, verifying: str) -> None:
    command = ("register", "+49 171 123-45-67", "--server", verifying)
    waiting = hand.types(*command)
    assert waiting.exit_code == 12
    assert one_sentence(waiting) == ("A code was sent to +491711234567. Register again with --code.")
    code = hook.calls[-1].json["code"]
    assert "not the code" in hand.types(*command, "--code", f"{(int(code) + 1) % 1_000_000:06}").stderr
    assert hand.gets(*command, "--code", code)[0]["handle"] == "+491711234567"


def test_a_code_and_a_pin_are_asked_for_when_they_are_needed(
    hand: Hand, hook: Hook, verifying: str, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register, "_ask_code", lambda _: hook.calls[-1].json["code"])
    ada = hand.name("ada")
    assert hand.types("register", ada, "--server", verifying).exit_code == 0
    assert hand.types("lock", "set", "--profile", ada, "--server", verifying, stdin="2468\n2468\n").exit_code == 0
    taken = hand.types(*again(hand, ada), "--server", verifying, stdin="2468\n")
    assert taken.exit_code == 0, taken.output
