"""`nightmail config`: the settings that a server would have here, and where each comes from.

Knows:   file, environment and defaults, through the server's settings.
Never:   shows a secret.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.text import Text

from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.server_settings import config_option, loaded
from nightmail.server.config import FILE_VARIABLE


@click.group("config", short_help="Show and check the settings of a server.")
def command() -> None:
    """Show and check the settings that `nightmail serve` would use here.

    Later sources win: defaults, file (--config, NIGHTMAIL_CONFIG), environment (NIGHTMAIL_SECTION__KEY), flags.
    """


@command.command()
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@config_option
@as_json_option
def show(origin: bool, file: Path | None, as_json: bool) -> None:
    """Show every setting in the format of a settings file. Secrets are shown as ***."""
    shown = loaded(file, {}).show()
    if as_json:
        for each in shown:
            value = {"name": each.name, "value": each.value, "unit": each.unit, "help": each.help}
            print_json({**value, "origin": each.origin} if origin else value)
        return
    page, section = console(), ""
    for each in shown:
        here, _, key = each.name.partition(".")
        if here != section:
            page.print(Text(f"\n[{here}]" if section else f"[{here}]", style="bold"))
            section = here
        line = Text(f"{key} = {each.value}")
        if origin:
            line.append(f"  # {each.origin}", style="dim" if each.origin == "default" else "cyan")
        page.print(line)


@command.command()
@config_option
@as_json_option
def check(file: Path | None, as_json: bool) -> None:
    """Check the settings without starting a server. The exit code is 2 if one is invalid."""
    origins = loaded(file, {}).origins.values()
    changed = sum(origin != "default" for origin in origins)
    if as_json:
        print_json({"ok": True, "changed": changed})
    else:
        console().print(f"All settings are valid; {changed} differ from their defaults.")


@command.command()
@config_option
@as_json_option
def path(file: Path | None, as_json: bool) -> None:
    """Show which settings file is read and which data folder is used."""
    settings = loaded(file, {})
    named = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    folder = Path(settings.config.data.folder).resolve()
    if as_json:
        print_json({"file": str(named.resolve()) if named else None, "folder": str(folder)})
        return
    page = console()
    page.print(f"file    {named.resolve() if named else f'none (--config or {FILE_VARIABLE})'}", markup=False)
    page.print(f"folder  {folder}", markup=False)
