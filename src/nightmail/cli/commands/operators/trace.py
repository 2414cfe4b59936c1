"""`nightmail trace`: the delivery log of one message. For operators."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from nightmail.cli.json_shapes import time_fields
from nightmail.cli.operator_access import operator_http, operator_options
from nightmail.cli.output import as_json_option, clock, console, print_json
from nightmail.cli.waiting import run_within


@click.command("trace", short_help="Show the delivery log of one message; for operators.")
@click.argument("message_id", metavar="ID")
@operator_options
@as_json_option
def command(
    message_id: str, token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the delivery log of the message ID: when it was accepted, how it was routed, its state on each device.

    `nightmail send` and `nightmail listen` print message ids. The delivery log holds no content; entries are kept for
    30 days.
    """
    seen = run_within(operator_http(token_file, data, file, servers, ca_file).trace(message_id))
    if as_json:
        events = [
            {**time_fields("at", event["at"]), "device": event["device"], "what": event["what"]}
            for event in seen["events"]
        ]
        print_json({**seen, "events": events})
        return
    page = console()
    table = Table(title=message_id, box=None, title_justify="left", header_style="dim")
    for column in ("when", "device", "what"):
        table.add_column(column)
    for event in seen["events"]:
        table.add_row(clock(event["at"]), event["device"] or "server", event["what"])
    page.print(table)
    for device, state in seen["states"].items():
        page.print(f"{device}: {state}", markup=False)
