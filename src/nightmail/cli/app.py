"""The group of commands. A command's module is imported when it is called, so `send` does not load a web server.

Knows:   the names of the commands, in the order in which a new user needs them. The module `commands/x_y.py`, or
         that in its room, defines the command `x-y`, under the name `command`.
Touches: nothing until a command is called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any, NoReturn

import click

from .errors import Exit, Failure, explained, print_error, report

COMMANDS: dict[str, str] = {
    "serve": "Run a server.",
    "outlet": "Call webhooks for a server, as a process of its own.",
    "cluster": "Make a cluster, and show how it is.",
    "register": "Create an account with its first device.",
    "chat": "Chat in this terminal.",
    "send": "Send a message; works offline.",
    "group": "Make groups, and change who is in them.",
    "seen-by": "Show who has a message of yours in a group, and who has read it.",
    "timer": "Let the messages of a conversation disappear.",
    "schedule": "Have a message delivered later; works offline.",
    "scheduled": "Show what is scheduled.",
    "cancel": "Cancel what is scheduled.",
    "listen": "Print messages and receipts as they arrive.",
    "history": "Show the messages of one conversation.",
    "media": "List the files of messages, and save them.",
    "search": "Search messages on this device.",
    "contacts": "Give contacts names that only your devices know.",
    "block": "Stop receiving messages from a contact.",
    "unblock": "Receive messages from a contact again.",
    "presence": "Show who is online, and who was last seen when.",
    "privacy": "Show who is told what about you, and change it.",
    "verify-contact": "Compare safety numbers with a contact.",
    "link": "Add another device to an account.",
    "migrate": "Move the account and its history to a new device.",
    "devices": "List, link, rename and remove the devices of an account.",
    "backup": "Save the history, encrypted, and restore it on a new device.",
    "push": "Say how a device is woken, and test a server's push providers.",
    "account": "Show and change the settings of an account; sign out; close it.",
    "lock": "Set or remove the PIN that protects an account from takeover.",
    "profile": "Show or change a profile's settings, and how its encryption key is protected.",
    "trace": "Show the delivery log of one message; for operators.",
    "deadletters": "Show, replay and discard what could not be delivered; for operators.",
    "clock": "Show the server's time, and put it right; for operators.",
    "folder": "Check, back up and restore the data folder of a server.",
    "config": "Show and check the settings of a server.",
    "verify": "Try to make a server lose, duplicate or reorder messages.",
    "demo": "Watch four devices and a server that is killed.",
    "completion": "Print a completion script for your shell.",
}
"""Name → one line for the list of commands."""

ROOMS: dict[str, tuple[str, ...]] = {
    "accounts": (
        "register",
        "link",
        "migrate",
        "devices",
        "backup",
        "push",
        "account",
        "lock",
        "profile",
        "privacy",
    ),
    "operators": ("serve", "outlet", "cluster", "trace", "deadletters", "clock", "folder", "config", "verify"),
}
"""Folder of `commands/` → the commands in it. All others are about messages and people."""


_COMMANDS = "nightmail.cli.commands"


class Commands(click.Group):
    """Commands that are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        rooms = [room for room, names in ROOMS.items() if cmd_name in names]
        return import_module(".".join((_COMMANDS, *rooms, cmd_name.replace("-", "_")))).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        with explained():
            return super().invoke(ctx)

    def main(  # pyright: ignore[reportIncompatibleMethodOverride]  # click's overloads differ in standalone_mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command, and report its error in the same form whatever found it: click, a command or the client."""
        words = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in words  # click may fail before it has parsed the option
        try:
            _check_text(words)
            code: object = super().main(words, prog_name, standalone_mode=False, **extra)
        except click.ClickException as error:
            report(error, as_json=as_json)
            sys.exit(error.exit_code)
        except click.Abort:
            report(Failure(Exit.OTHER, "Aborted.", "Nothing was changed.", "aborted"), as_json=as_json)
            sys.exit(Exit.OTHER)
        except Exception as mistake:
            if as_json:
                # Only its type: its text may hold content. The traceback on standard error shows where it happened.
                print_error(Exit.INTERNAL, f"A mistake of Nightmail itself: {type(mistake).__name__}.")
            raise
        sys.exit(code if isinstance(code, int) else 0)


def _check_text(words: Sequence[str]) -> None:
    """Raises click.UsageError for bytes that are no text, because handles, names and messages are."""
    try:
        " ".join(words).encode()
    except UnicodeEncodeError:
        raise click.UsageError("The command line is not UTF-8 text.") from None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Help for one command: nightmail send --help. docs/cli.md lists the exit codes.",
)
@click.version_option(metadata.version("nightmail"), "--version", message="nightmail %(version)s")
def nightmail() -> None:
    """Encrypted messages that arrive exactly once, in order, on every device.

    \b
    Try it in two terminals:
      nightmail serve
      nightmail register ada && nightmail register bob
      nightmail send --profile ada bob 'Hello, Bob.'
      nightmail listen --profile bob
    """


def main() -> None:
    nightmail(prog_name="nightmail")
