"""`nightmail search`: messages by their words, on this device.

Touches: the profile. What is looked for never leaves it.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.client import Client
from nightmail.client.store.search import text_of

from .people import Names, whom
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, console, message_json, message_line, say_json


@click.command("search", short_help="Find messages by their words, on this device.")
@click.argument("words", nargs=-1, required=True)
@click.option("--with", "person", metavar="NAME", help="Only in the conversation with this person.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, help="How many, the newest first.")
@profile_option
@server_options
@as_json_option
def command(
    words: tuple[str, ...], person: str | None, limit: int, profile: str | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Find messages that have all of WORDS, or words that begin so; upper case and accents do not matter.

    Of a language that is written without spaces, WORDS may be any part of a sentence.

    The index is part of the sealed profile, and nobody is asked: it works without a network.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    asyncio.run(_search(client, " ".join(words), person, limit, as_json))


async def _search(client: Client, words: str, person: str | None, limit: int, as_json: bool) -> None:
    async with client:
        names, account, page = Names(client), client.identity.account, console()
        found = client.search(words, None if person is None else whom(client, person), limit)
        for each in found:
            if as_json:
                say_json({**message_json(each.message, account), "spans": [list(span) for span in each.spans]})
            else:
                message = each.message
                page.print(message_line(message, names.of(message.peer), text_of(message), each.spans))
        if not found and not as_json:
            page.print("Nothing was found.", style="dim")
