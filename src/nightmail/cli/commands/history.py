"""`nightmail history`: the messages of one conversation, from this device's store.

Touches: the profile. Marks nothing as read.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.cli.contact_names import ContactNames, resolve_any
from nightmail.cli.json_shapes import message_json, state_word
from nightmail.cli.output import as_json_option, changed_line, console, hanging, message_line, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.client import Client, Group, Message
from nightmail.client.store.search import text_of


@click.command("history", short_help="Show the messages of one conversation.")
@click.argument("person", metavar="NAME")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, help="Show this many of the newest messages.")
@profile_option
@server_options
@as_json_option
def command(
    person: str, limit: int, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show the newest messages with NAME, oldest first. NAME is a handle, a contact's name, or a group.

    Works offline. Nothing is marked as read.
    """
    path = chosen(profile)
    asyncio.run(_show(client_of(path, servers_of(path, servers), ca_file=ca_file), person, limit, as_json))


async def _show(client: Client, person: str, limit: int, as_json: bool) -> None:
    async with client:
        names, account, page = ContactNames(client), client.identity.account, console()
        peer = resolve_any(client, person)
        changed_at = 0 if as_json or isinstance(peer, Group) else client.trust(peer).changed_at
        for message in client.history(peer, limit):
            if as_json:
                print_json({**message_json(message, account), **_state(message)})
                continue
            if changed_at and (not message.at or message.at > changed_at):
                page.print(changed_line(changed_at))
                changed_at = 0
            page.print(hanging(page, message_line(message, _name(names, message), text_of(message))))
        if changed_at:
            page.print(changed_line(changed_at))
        elif not as_json and not client.history(peer, 1):
            page.print(
                f"No messages {'in' if isinstance(peer, Group) else 'with'} {plain(person)} on this device.",
                style="dim",
                markup=False,
            )


def _name(names: ContactNames, message: Message) -> str:
    return names.of(message.peer) if message.own else names.author(message)


def _state(message: Message) -> dict[str, str]:
    if not message.own:
        return {}
    return {"state": state_word(message.state), **({"reason": message.reason} if message.reason else {})}
