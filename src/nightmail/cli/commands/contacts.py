"""`nightmail contacts`: names for contacts, on all devices of the account.

Touches: the profile. Names are not sent anywhere.
"""

from __future__ import annotations

import asyncio

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.contact_names import resolve
from nightmail.cli.json_shapes import contact_json
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.client import Client


@click.group("contacts", short_help="Give contacts names that only your devices know.")
def command() -> None:
    """Give contacts names. Names stay on your devices: neither the contacts nor the server learn them."""


@command.command("list")
@profile_option
@server_options
@as_json_option
def list_(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """List contacts, and which are verified or blocked."""
    asyncio.run(_list(_client(profile, servers, ca_file), as_json, blocked=False))


@command.command("blocked")
@profile_option
@server_options
@as_json_option
def blocked(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """List the blocked contacts."""
    asyncio.run(_list(_client(profile, servers, ca_file), as_json, blocked=True))


@command.command("name")
@click.argument("person", metavar="HANDLE")
@click.argument("name")
@profile_option
@server_options
@as_json_option
def name_(
    person: str, name: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Give the contact HANDLE the name NAME. For HANDLE, the contact's present name works as well."""
    asyncio.run(_name(_client(profile, servers, ca_file), person, name, as_json))


@command.command()
@click.argument("person", metavar="NAME")
@profile_option
@server_options
@as_json_option
def forget(person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Remove the name of a contact. Messages and blocks stay."""
    asyncio.run(_forget(_client(profile, servers, ca_file), person, as_json))


def _client(profile: str | None, servers: tuple[str, ...], ca_file: str | None) -> Client:
    path = chosen(profile)
    return client_of(path, servers_of(path, servers), ca_file=ca_file)


async def _list(client: Client, as_json: bool, *, blocked: bool) -> None:
    """All contacts, or only the blocked ones."""
    async with client:
        contacts = [contact for contact in client.people.all() if contact.blocked or not blocked]
        verified = {contact.account for contact in contacts if client.trust(contact.account).verified}
    if as_json:
        for contact in contacts:
            print_json({**contact_json(contact), "verified": contact.account in verified})
        return
    table = Table(box=None, header_style="dim")
    for column in ("name", "handle", ""):
        table.add_column(column)
    for contact in contacts:
        mark = Text("blocked", style="red") if contact.blocked else Text()
        if contact.account in verified:
            mark = Text("✔ verified ", style="green") + mark
        table.add_row(Text(plain(contact.name)), Text(plain(contact.handle)), mark)
    nobody = "Nobody is blocked." if blocked else "No contacts yet: nightmail contacts name HANDLE NAME."
    console().print(table if contacts else nobody)


async def _name(client: Client, person: str, name: str, as_json: bool) -> None:
    if not name.strip():
        raise click.UsageError("A name cannot be empty; nightmail contacts forget removes one.")
    async with client:
        contact = await client.people.name(resolve(client, person), name)
    if as_json:
        print_json(contact_json(contact))
    else:
        console().print(f"{plain(contact.handle)} is called {plain(contact.name)} on your devices.", markup=False)


async def _forget(client: Client, person: str, as_json: bool) -> None:
    async with client:
        known = await client.people.forget(resolve(client, person))
    if as_json:
        print_json({"forgotten": known})
    else:
        console().print("Forgotten." if known else "There was no such contact.")
