"""`nightmail presence`: who is online, and who was last seen when.

Touches: the server, as a device of the account. Nothing is stored.
"""

from __future__ import annotations

import click

from nightmail.cli.contact_names import resolve
from nightmail.cli.json_shapes import sight_json
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.presence_words import sight_words
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.events import Sight


@click.command("presence", short_help="Show who is online, and who was last seen when.")
@click.argument("people", metavar="NAME...", nargs=-1, required=True)
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(
    people: tuple[str, ...], profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show whether each NAME is online, or when they were last seen.

    It is unavailable if NAME hides it from you, if you hide yours (nightmail privacy), or if there is no such account.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    for person, account, sight in run_within(_ask(client, people)):
        if as_json:
            print_json({"account": f"{account:x}", "peer": person, **sight_json(sight)})
        else:
            console().print(f"{plain(person)}: {sight_words(sight)}", markup=False)


async def _ask(client: Client, people: tuple[str, ...]) -> list[tuple[str, int, Sight]]:
    async with client:
        contacts = [client.people.get(resolve(client, person)) for person in people]
        sights = await client.presence(*(contact.account for contact in contacts))
        return [
            (client.people.called(contact.account) if contact.name else contact.handle, contact.account, sight)
            for contact, sight in zip(contacts, sights, strict=True)
        ]
