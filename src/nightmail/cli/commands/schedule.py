"""`nightmail schedule`: have a webhook called later.

Touches: the server, as a device of the account.
"""

from __future__ import annotations

import secrets
from typing import Any

import click
import msgspec

from nightmail.cli.durations import Duration
from nightmail.cli.output import as_json_option, clock, console, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.schedule_words import made_fields
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client


@click.command("schedule", short_help="Have a webhook called later.")
@click.argument("url", metavar="URL")
@click.argument("content", metavar="JSON")
@click.option("--in", "delay_ms", type=Duration(), metavar="30s|5m|1h|7d", help="After this time.")
@click.option("--at", "deliver_at", metavar="TIME", help="At this time: RFC 3339 with a zone, 2026-03-01T12:00:00Z.")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(
    url: str, content: str, delay_ms: int | None, deliver_at: str | None, profile: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Have the server call the webhook URL later, and tell it JSON. Prints the id of the message.

    The server can read JSON: it calls a third party. It deletes it when the call has ended. The server must allow such
    calls (schedule.webhooks).
    """
    if (delay_ms is None) == (deliver_at is None):
        raise click.UsageError("Say when: --in or --at.")
    try:
        told = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise click.UsageError("JSON is not JSON. A text has quotes of its own: '\"Hello\"'.") from None
    asked: dict[str, Any] = {"content": told, "target": {"type": "webhook", "url": url}}
    if delay_ms is not None:
        asked["delay_seconds"] = delay_ms / 1_000
    else:
        asked["deliver_at"] = deliver_at
    path = chosen(profile)
    made = run_within(_schedule(client_of(path, servers_of(path, servers), ca_file=ca_file), asked))
    if as_json:
        print_json(made_fields(made))
    else:
        console().print(f"{made['message_id']} at {clock(made['deliver_at'])}", markup=False)


async def _schedule(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    async with client:
        return await client.http.schedule(asked, secrets.token_hex(16))
