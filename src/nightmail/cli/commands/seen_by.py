"""`nightmail seen-by`: who has a message of this account in a group, and who has read it.

Touches: the profile; asks the server.
"""

from __future__ import annotations

import click

from nightmail.cli.contact_names import ContactNames
from nightmail.cli.group_words import seen_words
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client, SeenBy
from nightmail.client.events import Connected
from nightmail.model.words import MessageState


@click.command("seen-by", short_help="Show who has a message of yours in a group, and who has read it.")
@click.argument("message_id", metavar="MESSAGE-ID")
@click.option("--names", is_flag=True, help="List the members, with what became of the message there.")
@profile_option
@timeout_option()
@server_options
@as_json_option
def command(
    message_id: str, names: bool, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show how many members of a group have MESSAGE-ID, a message of yours, and how many have read it.

    `nightmail send` and `nightmail history --json` print the ids of messages.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    run_within(_show(client, message_id, names, as_json))


async def _show(client: Client, message_id: str, with_names: bool, as_json: bool) -> None:
    async with client:
        events = client.events()
        while not client.online:
            if isinstance(await anext(events), Connected):
                break
        seen = await client.seen_by(message_id)
        page, names = console(), ContactNames(client)
        if as_json:
            handles = {account: client.people.get(account).handle for account in seen.members}
            members = [
                {"account": f"{account:x}", "handle": handles[account], "state": state.name.lower()}
                for account, state in _people(seen)
            ]
            shape = {"message_id": message_id, "delivered": seen.delivered, "read": seen.read, "of": seen.of}
            print_json({**shape, "members": members})
            return
        said = seen_words(seen)
        page.print(f"{said[:1].upper()}{said[1:]}.", markup=False)
        for account, state in _people(seen) if with_names else ():
            page.print(f"{state.name.lower():10} {plain(names.of(account))}", markup=False)


def _people(seen: SeenBy) -> list[tuple[int, MessageState]]:
    """The furthest first. Account 0 stands for nobody in particular."""
    return sorted(((a, s) for a, s in seen.members.items() if a), key=lambda each: (-each[1], each[0]))
