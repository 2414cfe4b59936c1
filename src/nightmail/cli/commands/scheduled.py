"""`nightmail scheduled`: what is scheduled, and what became of it.

Touches: the server, as a device of the account.
"""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.output import as_json_option, clock, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.schedule_words import QUEUED, merged, schedule_fields, target_words
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.errors import Unreachable

STATES = ("queued", "pending", "processing", "delivered", "cancelled", "failed")


@click.command("scheduled", short_help="Show what is scheduled.")
@click.argument("message_id", metavar="[ID]", required=False)
@click.option("--state", type=click.Choice(STATES), default=None, help="Only those in this state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, help="At most so many.")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(
    message_id: str | None, state: str | None, limit: int, profile: str | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the scheduled messages of the account, newest first; or the one with this ID.

    What only this device has is "queued", and comes first: the server gets it with the next connection. The text is
    shown until it was delivered or cancelled. If no server answers, only what this device knows is shown.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    seen = run_within(_seen(client, message_id, state or "", limit))
    if as_json:
        for each in seen:
            print_json(schedule_fields(each))
        return
    if not seen:
        console().print("Nothing is scheduled." if not state else f"Nothing is {state}.")
        return
    table = Table(box=None, header_style="dim")
    for column in ("id", "when", "state", "to", "text"):
        # An id is copied into the next command.
        table.add_column(column, overflow="fold" if column == "id" else "ellipsis")
    for each in seen:
        why = f"{each['state']} ({each['error']})" if each.get("error") else each["state"]
        to, text = Text(plain(target_words(each))), Text(plain(each.get("text", "")))
        table.add_row(each["message_id"], clock(each["deliver_at"]), Text(why), to, text)
    console().print(table)


async def _seen(client: Client, message_id: str | None, state: str, limit: int) -> list[dict[str, Any]]:
    async with client:
        local = client.scheduled()
        try:
            seen = await _listed(client, message_id, state, limit)
        except Unreachable:
            if not local:
                raise
            seen = []
        found = merged(seen, [each for each in client.scheduled() if message_id in (None, each.id)])
        return [each for each in found if not state or each["state"] == state][:limit]


async def _listed(client: Client, message_id: str | None, state: str, limit: int) -> list[dict[str, Any]]:
    """What the server shows."""
    if message_id:
        is_queued = any(each.id == message_id and each.is_queued for each in client.scheduled())
        return [] if is_queued else [await client.http.scheduled(message_id)]
    found: list[dict[str, Any]] = []
    page = ""
    while len(found) < limit and state != QUEUED:
        listed = await client.http.list_scheduled(state, page)
        found += listed["schedules"]
        page = listed.get("next_page", "")
        if not page:
            break
    return found
