"""The group of commands. A command's module is imported when it is called: `send` need not wait for a web server.

Knows:   the names of the commands, in the order in which people meet them.
Touches: nothing until a command is asked for.
"""

from __future__ import annotations

from importlib import import_module, metadata

import click

from .failing import explained

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "Run a server."),
    "register": ("register", "Make an account and its first device."),
    "chat": ("chat", "Conversations in this terminal."),
    "send": ("send", "Send a message; also without a network."),
    "listen": ("listen", "Print messages and ticks as they come."),
    "history": ("history", "Show what was written with somebody."),
    "search": ("search", "Find messages by their words, on this device."),
    "contacts": ("contacts", "Names for people, on this device alone."),
    "block": ("block", "Take nothing more from somebody."),
    "unblock": ("block:unblock", "Take messages from somebody again."),
    "verify-contact": ("verify_contact", "Compare safety numbers with somebody."),
    "link": ("link", "Make this a further device of an account, or take one in."),
    "migrate": ("migrate", "Move the account to a new device, with its history."),
    "devices": ("devices", "List, link, rename and remove the devices of an account."),
    "lock": ("lock", "Set and remove the PIN against a stolen number."),
    "profile": ("profile", "Show and change what keeps a profile sealed."),
    "trace": ("trace", "Tell the whole life of one message; for operators."),
    "folder": ("folder", "Check, back up and restore the data folder of a server."),
    "config": ("config", "Show and check the settings of a server."),
    "verify": ("verify", "Try to make a server lose, double or reorder messages."),
    "demo": ("demo", "Watch three devices and a server that is killed."),
    "completion": ("completion", "Print a script that completes commands in your shell."),
}
"""Name → (module, or module:name; one line for the list of commands)."""


class Commands(click.Group):
    """Commands that are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(f"nightmail.cli.{module}"), name or "command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        with explained():
            return super().invoke(ctx)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Each command explains itself: nightmail send --help. Exit codes are listed in docs/cli.md.",
)
@click.version_option(metadata.version("nightmail"), "--version", message="nightmail %(version)s")
def nightmail() -> None:
    """Messages that arrive exactly once, in order, on every device.

    \b
    A first try, in two terminals:
      nightmail serve
      nightmail register ada && nightmail register bob
      nightmail send --profile ada bob 'Hello, Bob.'
      nightmail listen --profile bob
    """


def main() -> None:
    nightmail(prog_name="nightmail")
