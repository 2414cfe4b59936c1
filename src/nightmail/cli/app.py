"""The group of commands. A command's module is imported when it is called, so `send` does not load a web server.

Knows:   the names of the commands, in the order in which a new user needs them. The module `commands/x_y.py`
         defines the command `x-y`, under the name `command`.
Touches: nothing until a command is called.
"""

from __future__ import annotations

from importlib import import_module, metadata

import click

from .errors import explained

COMMANDS: dict[str, str] = {
    "serve": "Run a server.",
    "register": "Create an account with its first device.",
    "chat": "Chat in this terminal.",
    "send": "Send a message; works offline.",
    "listen": "Print messages and receipts as they arrive.",
    "history": "Show the messages of one conversation.",
    "search": "Search messages on this device.",
    "contacts": "Give contacts names that only this device knows.",
    "block": "Stop receiving messages from a contact.",
    "unblock": "Receive messages from a contact again.",
    "verify-contact": "Compare safety numbers with a contact.",
    "link": "Make this machine another device of an account, or approve one.",
    "migrate": "Move the account and its history to a new device.",
    "devices": "List, link, rename and remove the devices of an account.",
    "lock": "Set or remove the PIN that protects an account from takeover.",
    "profile": "Show or change how a profile's encryption key is protected.",
    "trace": "Show the delivery log of one message; for operators.",
    "clock": "Show the server's time, and put it right; for operators.",
    "config": "Show and check the settings of a server.",
    "verify": "Try to make a server lose, duplicate or reorder messages.",
    "demo": "Watch three devices and a server that is killed.",
    "completion": "Print a completion script for your shell.",
}
"""Name → one line for the list of commands."""


class Commands(click.Group):
    """Commands that are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"nightmail.cli.commands.{cmd_name.replace('-', '_')}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        with explained():
            return super().invoke(ctx)


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
