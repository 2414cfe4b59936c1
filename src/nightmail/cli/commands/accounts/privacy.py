"""`nightmail privacy`: who is told what about this account, and the commands that change it.

Touches: the account's settings at the server, for all its devices; the contacts in the profile.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import click

from nightmail.cli.contact_names import ContactNames
from nightmail.cli.json_shapes import contact_json
from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.errors import NoPresence
from nightmail.client.store.rows import Contact
from nightmail.model.words import Audience

AUDIENCES = {audience.name.lower(): audience for audience in Audience}
CONTACTS = "contacts: the people whom you have written to or given a name"


class PrivacySettings(NamedTuple):
    read_receipts: bool
    last_seen: Audience | None
    """None: this server does not tell it to anybody."""
    contacts: list[Contact]
    names: dict[int, str]
    """How each contact is shown."""

    @property
    def blocked(self) -> list[Contact]:
        return [contact for contact in self.contacts if contact.blocked]


@click.group("privacy", short_help="Show who is told what about you, and change it.", invoke_without_command=True)
@profile_option
@server_options
@timeout_option()
@as_json_option
@click.pass_context
def command(
    around: click.Context, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show the privacy settings of the account, and how to change each: read receipts, last seen, contacts."""
    if around.invoked_subcommand:
        return
    path = chosen(profile)
    seen = run_within(_seen(client_of(path, servers_of(path, servers), ca_file=ca_file)))
    if as_json:
        print_json({
            "read_receipts": seen.read_receipts,
            "last_seen": seen.last_seen.name.lower() if seen.last_seen else None,
            "blocked": [contact_json(contact) for contact in seen.blocked],
            "contacts": [contact_json(contact) for contact in seen.contacts],
        })  # fmt: skip
        return
    receipts = (
        "on: others see when you have read a message, and you see when they have"
        if seen.read_receipts
        else "off: nobody sees when you have read a message, and you do not see when others have"
    )
    page = console()
    for name, value, change in (
        ("read receipts", receipts, "account read-receipts on|off"),
        ("last seen", _shown(seen.last_seen), "privacy last-seen everyone|contacts|nobody"),
        ("blocked", _names(seen, seen.blocked), "block NAME, unblock NAME"),
        ("saved contacts", _names(seen, seen.contacts), "contacts name HANDLE NAME, contacts forget NAME"),
    ):
        page.print(f"{name:14} {value}", markup=False)
        page.print(f"{'':14} change it: nightmail {change}", markup=False, style="dim")
    page.print("Names of contacts stay on your devices. The server knows the numbers of their accounts.", markup=False)


def _shown(audience: Audience | None) -> str:
    if audience is None:
        return "not shown to anybody by this server"
    return f"shown to {CONTACTS if audience is Audience.CONTACTS else audience.name.lower()}"


def _names(seen: PrivacySettings, contacts: list[Contact]) -> str:
    return ", ".join(seen.names[contact.account] for contact in contacts) or "nobody"


async def _seen(client: Client) -> PrivacySettings:
    async with client:
        settings, contacts, names = await client.http.devices(), client.people.all(), ContactNames(client)
        last_seen = None
        with suppress(NoPresence):
            last_seen = await client.show_presence_to(None)
        return PrivacySettings(
            settings["read_receipts"], last_seen, contacts,
            {contact.account: names.of(contact.account) for contact in contacts},
        )  # fmt: skip


@command.command("last-seen")
@click.argument("wanted", metavar="[everyone|contacts|nobody]", type=click.Choice(list(AUDIENCES)), required=False)
@profile_option
@server_options
@timeout_option()
@as_json_option
def last_seen(
    wanted: str | None, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Choose who may see when you are online and when you were last seen; without an argument, show who may.

    Contacts are the people whom you have written to or given a name; somebody whom you block sees nothing. If nobody
    may see yours, you see nobody's.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    shown_to = run_within(_choose(client, AUDIENCES[wanted] if wanted else None))
    if as_json:
        print_json({"last_seen": shown_to.name.lower()})
    else:
        console().print(f"Online and last seen are {_shown(shown_to)}.", markup=False)


async def _choose(client: Client, audience: Audience | None) -> Audience:
    async with client:
        return await client.show_presence_to(audience)
