"""`nightmail serve`: runs a server, and prints its address and what to try next.

Touches: the data folder and the socket, through the server.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from nightmail.cli.errors import print_error
from nightmail.cli.output import as_json_option, command_line, console, print_json
from nightmail.cli.profiles import DEFAULT_SERVER
from nightmail.cli.server_settings import config_option, loaded, setting_options
from nightmail.server.operator import FILE_NAME as TOKEN_FILE
from nightmail.server.process import ServingNode, run


@click.command("serve", short_help="Run a server.")
@config_option
@setting_options
@as_json_option
def command(file: Path | None, as_json: bool, **given: Any) -> None:
    """Run a server until Ctrl-C.

    It runs without any setting. Settings that are not listed below have flags, too, named --section-key, for example
    --limits-mailbox-entries 500. `nightmail config show` lists all of them, docs/configuration.md explains them.

    With --json, it prints one line on standard output when it accepts connections. The log goes to standard error.
    """
    settings = loaded(file, given)
    sys.exit(run(settings.config, _say_json, print_error) if as_json else run(settings.config, _say))


def _say_json(node: ServingNode) -> None:
    print_json({"url": node.url, "pid": os.getpid(), "folder": str(node.folder.resolve()), "node": node.name})


def _say(node: ServingNode) -> None:
    folder = node.folder
    where = [] if node.url == DEFAULT_SERVER else ["--server", node.url]
    page = console()
    page.print(f"\n[bold]Nightmail serves at [cyan]{node.url}[/cyan][/bold], data in {folder}.")
    page.print("\nTry it, in another terminal:\n", style="dim")
    for line in (
        ("register", "ada", *where),
        ("register", "bob", *where),
        ("send", "--profile", "ada", "bob", "Hello, Bob."),
        ("listen", "--profile", "bob"),
    ):
        page.print(f"  {command_line(*line)}", markup=False)
    page.print("\nTest it:\n", style="dim")
    for line, what in ((("verify",), "chaos on a server of its own"), (("demo",), "four devices and a kill -9")):
        page.print(f"  {command_line(*line):<44} [dim]{what}[/dim]")
    page.print(f"\nOperations page: {node.url}/ops", style="dim")
    page.print(f"Health: {node.url}/healthz, metrics: {node.url}/metrics, API: {node.url}/openapi.json", style="dim")
    page.print(f"Operator's token: {folder / TOKEN_FILE}. Ctrl-C stops it; no message is lost.\n", style="dim")
