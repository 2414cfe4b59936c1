"""`nightmail block` and `nightmail unblock`: who may not reach this account.

Touches: the block list at the server, then the contact here.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.client import Client

from .contacts import contact_json
from .people import whom
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, console, plain, say_json


@click.command("block", short_help="Take nothing more from somebody.")
@click.argument("person", metavar="NAME")
@profile_option
@server_options
@as_json_option
def command(person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Take nothing more from NAME, on every device of the account. They learn nothing of it."""
    _run(person, profile, servers, ca_file, as_json, on=True)


@click.command("unblock", short_help="Take messages from somebody again.")
@click.argument("person", metavar="NAME")
@profile_option
@server_options
@as_json_option
def unblock(person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Take messages from NAME again. What they wrote meanwhile does not come."""
    _run(person, profile, servers, ca_file, as_json, on=False)


def _run(
    person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool, *, on: bool
) -> None:
    path = chosen(profile)
    asyncio.run(_block(client_of(path, servers_of(path, servers), ca_file=ca_file), person, as_json, on=on))


async def _block(client: Client, person: str, as_json: bool, *, on: bool) -> None:
    async with client:
        contact = await client.people.block(whom(client, person), on=on)
        called = client.people.called(contact.account)
    if as_json:
        say_json(contact_json(contact))
    else:
        console().print(f"{plain(called)} is {'blocked' if on else 'not blocked any more'}.", markup=False)
