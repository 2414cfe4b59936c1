"""`nightmail chat`: opens the chat window.

Touches: the terminal and the profile, through `nightmail.cli.chat`.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec

import click

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.client import Client


@click.command("chat", short_help="Chat in this terminal.")
@click.argument("person", metavar="[NAME]", required=False)
@profile_option
@server_options
def command(person: str | None, profile: str | None, servers: tuple[str, ...], ca_file: str | None) -> None:
    """Chat in this terminal. With NAME, open that conversation first.

    \b
      Enter          send                     Ctrl+N   new conversation
      Ctrl+J         new line                 Ctrl+G   new group
      Tab            list, messages, text     Ctrl+F   search
      Enter, R       (on a message) reply     Ctrl+S   safety number; members of a group
      Esc            back                     Ctrl+T   let messages disappear
      Ctrl+Q         quit                     Ctrl+L   send the message later

    The chat works offline: messages wait in the outbox. Messages on the screen count as read while the terminal has
    the focus.
    """
    if find_spec("textual") is None:
        raise Failure(Exit.USAGE, "The chat needs Textual.", "Install it: pip install 'nightmail[tui]'.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(Exit.USAGE, "The chat needs a terminal.", "For scripts: nightmail send, nightmail listen --json.")
    path = chosen(profile)
    asyncio.run(_chat(client_of(path, servers_of(path, servers), ca_file=ca_file), person))


async def _chat(client: Client, person: str | None) -> None:
    from nightmail.cli.chat.app import ChatApp  # noqa: PLC0415  # Textual is an extra, and slow to import

    async with client:
        await ChatApp(client, person or "").run_async()
