"""`nightmail outlet`: calls webhooks for a server on this machine, as a process of its own.

Touches: the socket in the server's data folder, through the server's parts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nightmail.cli.server_settings import config_option, loaded
from nightmail.server.outlet_process import run_outlet


@click.command("outlet", short_help="Call webhooks for a server, as a process of its own.")
@click.option("-d", "--data", metavar="FOLDER", help="The data folder of a server on this machine.")
@config_option
def command(data: str | None, file: Path | None) -> None:
    """Call webhooks for the server of a data folder, until Ctrl-C.

    The server must have outlet.runs_in = "processes". Several may run beside each other.
    """
    sys.exit(run_outlet(loaded(file, {"data__folder": data} if data else {}).config))
