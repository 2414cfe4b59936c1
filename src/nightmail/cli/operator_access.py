"""How an operator's command reaches a server.

Knows:   where the operator's token may be: a file, the environment, the data folder of a server on this machine.
Never:   prints the token.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.profiles import server_options, servers_of, tls_of
from nightmail.cli.server_settings import config_option, loaded
from nightmail.cli.waiting import bounded_limits, timeout_option
from nightmail.client.errors import Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.link.http import Http
from nightmail.client.link.route import ServerAddress
from nightmail.server.operator import FILE_NAME

TOKEN_VARIABLE = "NIGHTMAIL_OPERATOR__TOKEN"  # noqa: S105 (a name, not a token)


def operator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that needs the operator's token: `operator_http` takes them."""
    token_file = click.option(
        "--token-file", type=click.Path(path_type=Path), metavar="FILE",
        help=f"File containing the operator's token. By default {TOKEN_VARIABLE}, {TOKEN_VARIABLE}_FILE, "
        f"or {FILE_NAME} in the data folder.",
    )  # fmt: skip
    data = click.option("-d", "--data", metavar="FOLDER", help="The data folder of a server on this machine.")
    return token_file(data(config_option(server_options(timeout_option()(command)))))


def operator_http(
    token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...], ca_file: str | None
) -> Http:
    token = _token(token_file, data, file)
    try:
        addresses = [ServerAddress.parse(server).http for server in servers_of(None, servers)]
    except Misused as error:
        raise click.UsageError(str(error)) from None
    return Http(
        addresses, authorization=f"Bearer operator.{token}", tls=tls_of(ca_file), limits=bounded_limits(ClientLimits())
    )


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
