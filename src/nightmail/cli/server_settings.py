"""The settings of a server, as flags, files and environment variables of a command.

Knows:   that every setting has a flag, except secrets; help shows the flags in MAIN.
Touches: the settings file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from nightmail.server.config import SETTINGS, Loaded, load
from nightmail.server.settings import BadSetting

from .errors import Exit, Failure

MAIN = {
    "server.host": "--host",
    "server.port": "--port",
    "data.folder": "--data",
    "server.tls_cert_file": "--tls-cert",
    "server.tls_key_file": "--tls-key",
    "log.level": "--log-level",
    "log.format": "--log-format",
}
"""Settings that help shows, and their short flags."""


def config_option(command: Any) -> Any:
    return click.option(
        "-c", "--config", "file", type=click.Path(path_type=Path), metavar="FILE",
        help="Settings in TOML; also NIGHTMAIL_CONFIG.",
    )(command)  # fmt: skip


def setting_options(command: Any) -> Any:
    """A flag for every setting except secrets, because other processes can read a command line."""
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
    """The settings from file, environment and flags. Raises Failure."""
    flags = {name: given[_parameter(name)] for name in SETTINGS if given.get(_parameter(name)) is not None}
    try:
        return load(file, os.environ, flags)
    except BadSetting as error:
        raise Failure(Exit.USAGE, f"{error}.", "All settings: nightmail config show.") from None


def _parameter(name: str) -> str:
    return name.replace(".", "__")
