"""`nightmail cancel`: a scheduled message is not to be delivered.

Touches: the server, as a device of the account.
"""

from __future__ import annotations

import click

from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client


@click.command("cancel", short_help="Cancel what is scheduled.")
@click.argument("message_id", metavar="ID")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(message_id: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Cancel the scheduled message ID. It is then never delivered; a delivered one cannot be cancelled.

    If no server answers, the exit code is 18. A message of this profile stays to be cancelled: the next command that
    connects does it.
    """
    path = chosen(profile)
    run_within(_cancel(client_of(path, servers_of(path, servers), ca_file=ca_file), message_id))
    if as_json:
        print_json({"message_id": message_id, "cancelled": True})
    else:
        console().print(f"{message_id} is cancelled.", markup=False)


async def _cancel(client: Client, message_id: str) -> None:
    async with client:
        if any(message.id == message_id for message in client.scheduled()):
            await client.cancel(message_id)
        else:
            await client.http.cancel(message_id)
