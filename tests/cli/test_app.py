"""The group of commands: help, completion, and what the documentation says of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nightmail.cli.app import COMMANDS, ROOMS, nightmail
from nightmail.cli.errors import Exit
from nightmail.server.process import EXIT_CODES
from tests.cli.hand import NOBODY, Hand

ROOT = Path(__file__).parent.parent.parent
DOCS = (ROOT / "docs" / "cli.md").read_text()


def commands(group: click.Group = nightmail, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, and every command of a group of commands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield (*above, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*above, name))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_explains_itself_and_stands_in_the_documentation(words: tuple[str, ...], hand: Hand) -> None:
    result = hand.types(*words, "--help")
    assert result.exit_code == 0
    assert f"Usage: nightmail {' '.join(words)}" in result.stdout
    assert f"`nightmail {' '.join(words)}" in DOCS


def test_the_list_of_commands_says_what_each_of_them_says() -> None:
    context = click.Context(nightmail)
    for name, line in COMMANDS.items():
        found = nightmail.get_command(context, name)
        assert found is not None
        assert found.short_help == line


def test_every_command_in_a_room_is_a_command() -> None:
    assert {name for names in ROOMS.values() for name in names} <= COMMANDS.keys()


def test_every_exit_code_stands_in_the_documentation() -> None:
    table = {(int(code), name) for code, name in re.findall(r"^\| (\d+) \| (?:`(\w+)` )?\|", DOCS, re.MULTILINE)}
    assert {(int(code), code.name.lower() if code else "") for code in Exit} == table
    assert set(EXIT_CODES.values()) <= {int(code) for code in Exit}


def test_every_event_that_scripts_may_see_stands_in_the_documentation() -> None:
    told = set(re.findall(r'"type": "(\w+)"', (ROOT / "src/nightmail/cli/json_shapes.py").read_text()))
    assert told - set(re.findall(r"`(\w+)`", DOCS)) == set()


@pytest.mark.parametrize(
    ("words", "error", "exit_code"),
    [
        (("snd",), "usage", 2),
        ((), "usage", 2),
        (("send", "--no-such-option"), "usage", 2),
        (("send",), "usage", 2),
        (("listen", "--profile", "nobody"), "no_profile", 10),
        (("register", "ada", "--server", NOBODY), "no_server", 11),
        (("serve", "--port", "many"), "usage", 2),
        (("serve", "--data", "here", "--host", "256.0.0.1"), "cannot_listen", 6),
    ],
)
def test_every_error_is_one_line_for_people_and_an_object_for_scripts(
    hand: Hand, words: tuple[str, ...], error: str, exit_code: int
) -> None:
    result = hand.types(*words, "--json")
    assert result.exit_code == exit_code
    (message,) = [line for line in result.stderr.splitlines() if line.startswith("nightmail: ")]
    assert json.loads(result.stdout) == {
        "type": "error", "error": error, "exit_code": exit_code, "message": message.removeprefix("nightmail: "),
    }  # fmt: skip
    assert "Error:" not in result.stderr


def test_an_error_object_names_the_servers_refusal(hand: Hand) -> None:
    ada = hand.registers("ada")
    result = hand.types("register", ada, "--profile", "./other", "--json")
    assert json.loads(result.stdout)["reason"] == "handle_taken"


def test_a_mistake_of_our_own_is_an_object_without_its_text(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def broken(_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(nightmail.get_command(click.Context(nightmail), "listen"), "invoke", broken)
    result = CliRunner().invoke(nightmail, ["listen", "--json"])
    assert isinstance(result.exception, RuntimeError)
    assert json.loads(result.stdout)["error"] == "internal"
    assert "secret" not in result.stdout


def test_nothing_of_the_server_is_imported_to_send_a_message() -> None:
    code = "import sys, nightmail.cli.app, nightmail.cli.commands.send; sys.exit('nightmail.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str, hand: Hand) -> None:
    script = hand.types("completion", shell).stdout
    assert "_NIGHTMAIL_COMPLETE" in script


def test_a_shell_completes_commands_and_profiles(hand: Hand) -> None:
    ada = hand.registers("ada")
    asked = {"_NIGHTMAIL_COMPLETE": "bash_complete", "COMP_WORDS": "nightmail lis", "COMP_CWORD": "1"}
    assert hand.types(**asked).stdout == "plain,listen\n"
    asked |= {"COMP_WORDS": "nightmail send --profile ad", "COMP_CWORD": "3"}
    assert hand.types(**asked).stdout == f"plain,{ada}\n"
