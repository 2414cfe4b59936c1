"""`nightmail serve`: run a server, and say where it is and what to try next.

Knows:   that every setting has a flag; the main ones are shown in the help.
Touches: the data folder and the socket, through the server.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from nightmail.server.config import SETTINGS, Loaded, load
from nightmail.server.node import Node
from nightmail.server.operator import FILE_NAME as TOKEN_FILE
from nightmail.server.process import run
from nightmail.server.settings import BadSetting

from .failing import Exit, Failure
from .profiles import DEFAULT_SERVER
from .saying import as_json_option, command_line, console, say_json

MAIN = {
    "server.host": "--host",
    "server.port": "--port",
    "data.folder": "--data",
    "server.tls_cert_file": "--tls-cert",
    "server.tls_key_file": "--tls-key",
    "log.level": "--log-level",
    "log.format": "--log-format",
}
"""Settings that the help shows, and their short flags."""


def config_option(command: Any) -> Any:
    return click.option(
        "-c", "--config", "file", type=click.Path(path_type=Path), metavar="FILE",
        help="Settings in TOML; also NIGHTMAIL_CONFIG.",
    )(command)  # fmt: skip


def setting_options(command: Any) -> Any:
    """A flag for every setting, without secrets: what stands on a command line is seen by all."""
    for name, setting in reversed(SETTINGS.items()):
        if not setting.secret:
            names = [flag for flag in (MAIN.get(name), setting.flag) if flag]
            command = click.option(
                *dict.fromkeys(names), _parameter(name), metavar="VALUE" if not setting.choices else None,
                type=click.Choice(setting.choices) if setting.choices else str,
                help=f"{setting.help} Default: {setting.default!r}.", hidden=name not in MAIN,
            )(command)  # fmt: skip
    return command


def loaded(file: Path | None, given: dict[str, Any]) -> Loaded:
    """The settings, from everywhere. Raises Failure."""
    flags = {name: given[_parameter(name)] for name in SETTINGS if given.get(_parameter(name)) is not None}
    try:
        return load(file, os.environ, flags)
    except BadSetting as error:
        raise Failure(Exit.USAGE, f"{error}.", "All settings: nightmail config show.") from None


def _parameter(name: str) -> str:
    return name.replace(".", "__")


@click.command("serve", short_help="Run a server.")
@config_option
@setting_options
@as_json_option
def command(file: Path | None, as_json: bool, **given: Any) -> None:
    """Run a server until Ctrl-C.

    Nothing has to be set. Every other setting has a flag, too, named --section-key: --limits-mailbox-entries 500.
    `nightmail config show` lists them all, docs/configuration.md explains them.

    With --json, one line on standard output says where it listens once it does; the log is on standard error.
    """
    settings = loaded(file, given)
    sys.exit(run(settings.config, _say_json if as_json else _say))


def _say_json(node: Node) -> None:
    say_json({"url": node.url, "pid": os.getpid(), "folder": str(node.heart.folder.resolve()), "node": node.name})


def _say(node: Node) -> None:
    folder = node.heart.folder
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
    page.print("\nSee what it is worth:\n", style="dim")
    for line, what in ((("verify",), "chaos on a server of its own"), (("demo",), "three devices and a kill -9")):
        page.print(f"  {command_line(*line):<44} [dim]{what}[/dim]")
    page.print(f"\nHealth: {node.url}/healthz, metrics: {node.url}/metrics, API: {node.url}/openapi.json", style="dim")
    page.print(f"Operator's token: {folder / TOKEN_FILE}. Ctrl-C stops it, and nothing is lost.\n", style="dim")
