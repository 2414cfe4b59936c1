"""`nightmail search`: finds messages on this device.

Touches: the profile. Search words never leave the device.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.cli.contact_names import ContactNames, resolve_any
from nightmail.cli.json_shapes import message_json
from nightmail.cli.output import as_json_option, console, hanging, message_line, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.client import Client
from nightmail.client.store.search import text_of


@click.command("search", short_help="Search messages on this device.")
@click.argument("words", nargs=-1, required=True)
@click.option("--with", "person", metavar="NAME", help="Only in the conversation with this person, or in this group.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, help="Show at most this many, the newest first.")
@profile_option
@server_options
@as_json_option
def command(
    words: tuple[str, ...], person: str | None, limit: int, profile: str | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Find messages that contain all of WORDS, or words that start with them. Case and accents are ignored.

    In scripts without spaces, WORDS may be any part of a sentence.

    The index is part of the encrypted profile; search works offline.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    asyncio.run(_search(client, " ".join(words), person, limit, as_json))


async def _search(client: Client, words: str, person: str | None, limit: int, as_json: bool) -> None:
    async with client:
        names, account, page = ContactNames(client), client.identity.account, console()
        found = client.search(words, None if person is None else resolve_any(client, person), limit)
        for each in found:
            if as_json:
                print_json({**message_json(each.message, account), "spans": [list(span) for span in each.spans]})
            else:
                message = each.message
                page.print(hanging(page, message_line(message, names.whose(message), text_of(message), each.spans)))
        if not found and not as_json:
            page.print("Nothing found.", style="dim")
