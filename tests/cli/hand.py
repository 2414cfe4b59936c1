"""Somebody who types commands."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from nightmail.cli.app import nightmail
from nightmail.client.link.http import Http
from nightmail.client.own_devices.link_request import choose_identity
from nightmail.model.words import Platform
from nightmail.testing import RunningServer

NOBODY = "http://127.0.0.1:9"
"""An address where nothing listens."""


class Hand:
    def __init__(self, server: RunningServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self._suffix = secrets.token_hex(4)

    def name(self, handle: str) -> str:
        """A handle that no other test uses."""
        return f"{handle}-{self._suffix}"

    def types(self, *words: str, stdin: str | bytes | None = None, **environ: str) -> Result:
        """A command, as somebody types it. What a user can cause never ends in a traceback."""
        result = CliRunner().invoke(nightmail, words, input=stdin, env=environ, prog_name="nightmail")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def gets(self, *words: str, stdin: str | bytes | None = None) -> list[dict[str, Any]]:
        """The same with --json, and it works."""
        result = self.types(*words, "--json", stdin=stdin)
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    def registers(self, handle: str) -> str:
        name = self.name(handle)
        self.gets("register", name)
        return name


def one_sentence(result: Result) -> str:
    """What went wrong, in one line on standard error and nothing on standard output."""
    assert result.stdout == ""
    assert result.stderr.startswith("nightmail: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("nightmail: ").strip()


def registered_without_keys(hand: Hand) -> str:
    """An account whose device has not signed a device list, and has published no keys."""
    identity = choose_identity(hand.name("newcomer"))
    asyncio.run(Http([hand.server.url]).register(identity, "phone", Platform.CLI))
    return identity.handle


def a_conversation(hand: Hand) -> tuple[str, str]:
    """Ada and Bob have written to each other, and both know it."""
    ada, bob = hand.registers("ada"), hand.registers("bob")
    hand.gets("send", "-p", ada, bob, "Lunch at the café?", "--wait", "sent")
    hand.gets("listen", "-p", bob, "--until-empty")
    hand.gets("send", "-p", bob, ada, "Rather dinner.", "--wait", "sent")
    hand.gets("listen", "-p", ada, "--until-empty")
    return ada, bob
