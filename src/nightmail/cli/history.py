"""`nightmail history`: what was written with somebody, from this device's own store.

Touches: the profile. Nothing becomes read by being looked at here.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.client import Client, Message
from nightmail.client.store.search import text_of

from .people import Names, whom
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, changed_line, console, message_json, message_line, say_json


@click.command("history", short_help="Show what was written with somebody.")
@click.argument("person", metavar="NAME")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, help="How many messages, the newest.")
@profile_option
@server_options
@as_json_option
def command(
    person: str, limit: int, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show the newest messages with NAME, oldest first: a handle, or what you call them.

    Works without a network. Nothing is marked as read.
    """
    path = chosen(profile)
    asyncio.run(_show(client_of(path, servers_of(path, servers), ca_file=ca_file), person, limit, as_json))


async def _show(client: Client, person: str, limit: int, as_json: bool) -> None:
    async with client:
        names, account, page = Names(client), client.identity.account, console()
        peer = whom(client, person)
        changed_at = 0 if as_json else client.trust(peer).changed_at
        for message in client.history(peer, limit):
            if as_json:
                say_json({**message_json(message, account), **_state(message)})
                continue
            if changed_at and (not message.at or message.at > changed_at):
                page.print(changed_line(changed_at))
                changed_at = 0
            page.print(message_line(message, names.of(message.peer), text_of(message)))
        if changed_at:
            page.print(changed_line(changed_at))


def _state(message: Message) -> dict[str, str]:
    if not message.own:
        return {}
    return {"state": message.state.name.lower(), **({"reason": message.reason} if message.reason else {})}
