"""`nightmail block`: no more messages from a contact.

Touches: the block list at the server, then the contact in the profile.
"""

from __future__ import annotations

import click

from nightmail.cli.contact_names import resolve
from nightmail.cli.errors import Exit, Failure
from nightmail.cli.json_shapes import contact_json
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client


@click.command("block", short_help="Stop receiving messages from a contact.")
@click.argument("person", metavar="NAME")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Stop receiving messages from NAME on every device of the account. NAME is not told."""
    set_blocked(person, profile, servers, ca_file, as_json, blocked=True)


def set_blocked(
    person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool, *, blocked: bool
) -> None:
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    run_within(_set_blocked(client, person, as_json, blocked=blocked))


async def _set_blocked(client: Client, person: str, as_json: bool, *, blocked: bool) -> None:
    async with client:
        who = resolve(client, person)
        if client.people.get(who).account == client.identity.account:
            raise Failure(Exit.USAGE, "This is your own account.")
        contact = await client.people.block(who, on=blocked)
        called = contact.name or contact.handle
    if as_json:
        print_json(contact_json(contact))
    else:
        console().print(f"{plain(called)} is {'blocked' if blocked else 'not blocked'}.", markup=False)
