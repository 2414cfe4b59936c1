"""`nightmail trace`: the delivery log of one message. For operators.

Knows:   where the operator's token may be: a file, the environment, the data folder of a server on this machine.
Never:   prints the token.
"""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.json_shapes import time_fields
from nightmail.cli.output import as_json_option, clock, console, print_json
from nightmail.cli.profiles import server_options, servers_of, tls_of
from nightmail.cli.server_settings import config_option, loaded
from nightmail.cli.waiting import bounded_limits, run_within, timeout_option
from nightmail.client.errors import Misused
from nightmail.client.link.http import Http
from nightmail.client.link.route import ServerAddress
from nightmail.server.operator import FILE_NAME

TOKEN_VARIABLE = "NIGHTMAIL_OPERATOR__TOKEN"  # noqa: S105 (a name, not a token)


@click.command("trace", short_help="Show the delivery log of one message; for operators.")
@click.argument("message_id", metavar="ID")
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help=f"File containing the operator's token. By default {TOKEN_VARIABLE}, {TOKEN_VARIABLE}_FILE, "
    f"or {FILE_NAME} in the data folder.",
)  # fmt: skip
@click.option("-d", "--data", metavar="FOLDER", help="The data folder of a server on this machine.")
@config_option
@server_options
@timeout_option()
@as_json_option
def command(
    message_id: str, token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the delivery log of the message ID: when it was accepted, how it was routed, its state on each device.

    `nightmail send` and `nightmail listen` print message ids. The delivery log holds no content; entries are kept for
    30 days.
    """
    token = _token(token_file, data, file)
    seen = run_within(_http(servers_of(None, servers), token, ca_file).trace(message_id))
    if as_json:
        events = [{**event, **time_fields("at", event["at"])} for event in seen["events"]]
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


def _http(servers: list[str], token: str, ca_file: str | None) -> Http:
    try:
        addresses = [ServerAddress.parse(server).http for server in servers]
    except Misused as error:
        raise click.UsageError(str(error)) from None
    return Http(addresses, authorization=f"Bearer operator.{token}", tls=tls_of(ca_file), limits=bounded_limits())


def _token(token_file: Path | None, data: str | None, file: Path | None) -> str:
    if token_file is None:
        settings = loaded(file, {"data__folder": data} if data else {})
        if token := settings.config.operator.token:
            return token
        token_file = Path(settings.config.data.folder) / FILE_NAME
    try:
        token = token_file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(
            Exit.USAGE, f"The operator's token cannot be read from {token_file}: {why}.",
            f"Name its file (--token-file) or the server's data folder (--data), or set {TOKEN_VARIABLE}.",
        ) from None  # fmt: skip
    if not token or any(char.isspace() for char in token):
        raise Failure(Exit.USAGE, f"{token_file} does not hold a token.", "Name its file with --token-file.")
    return token
