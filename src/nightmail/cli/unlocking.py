"""Which secret opens a profile, and which one protects a new profile: from options, the environment or a prompt.

    --passphrase-file FILE  >  NIGHTMAIL_PASSPHRASE  >  NIGHTMAIL_PASSPHRASE_FILE  >  a prompt without echo

Knows:   which profiles need a passphrase.
Never:   takes a passphrase as an argument, because other processes can read a command line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from nightmail.client import KeyFile, Keyring, Passphrase
from nightmail.client.profile import keybox
from nightmail.client.profile.protection import Secret

from .errors import Exit, Failure

VARIABLE = "NIGHTMAIL_PASSPHRASE"
FILE_VARIABLE = "NIGHTMAIL_PASSPHRASE_FILE"
_META = "nightmail.unlocking"


def passphrase_option(command: Any) -> Any:
    """For every command that opens a profile. The value is kept in click's context until a profile needs it."""
    return click.option(
        "--passphrase-file", type=click.Path(exists=True, dir_okay=False), expose_value=False, callback=_keep("file"),
        help=f"File containing the passphrase of the profile, if it has one; also {FILE_VARIABLE} and {VARIABLE}.",
    )(command)  # fmt: skip


def keeping_options(command: Any) -> Any:
    """For every command that creates a profile."""
    for option in (
        click.option("--keyring", is_flag=True, expose_value=False, callback=_keep("keyring"),
                     help="Protect the profile with a key in the system's keyring."),
        click.option("--key-file", type=click.Path(dir_okay=False), metavar="FILE", expose_value=False,
                     callback=_keep("key_file"), help="Protect the profile with a key in this file."),
        click.option("--passphrase", is_flag=True, expose_value=False, callback=_keep("passphrase"),
                     help="Protect the profile with a passphrase; asks for it."),
    ):  # fmt: skip
        command = option(command)
    return command


def secret_for(path: Path) -> Secret | None:
    """The secret that opens this profile; None if it needs no passphrase."""
    if keybox.kind_of(path) != "passphrase":
        return None
    if (given := _given()) is not None:
        return given
    return Passphrase(_ask(f"Passphrase of {path.name}"))


def secret_to_keep() -> Secret | None:
    """The secret for a new profile; None if no option names one."""
    given_options = {name: value for name in ("keyring", "key_file", "passphrase") if (value := _meta().get(name))}
    if len(given_options) > 1:
        raise click.UsageError("Use only one of --passphrase, --keyring and --key-file.")
    if "keyring" in given_options:
        return Keyring()
    if "key_file" in given_options:
        return KeyFile(str(given_options["key_file"]))
    if (given := _given()) is not None:
        return given
    return ask_new() if given_options else None


def ask_new() -> Passphrase:
    first = _ask("New passphrase")
    if _ask("Repeat it") != first:
        raise Failure(Exit.LOCKED, "The two passphrases differ.", "Nothing was changed.")
    return Passphrase(first)


def from_file(file: str) -> Passphrase:
    try:
        text = Path(file).read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError):
        raise Failure(Exit.LOCKED, f"{file} cannot be read as a passphrase.") from None
    if not text:
        raise Failure(Exit.LOCKED, f"{file} is empty.")
    return Passphrase(text)


# --- sources ----------------------------------------------------------------------------------


def _given() -> Passphrase | None:
    if file := _meta().get("file"):
        return from_file(file)
    if text := os.environ.get(VARIABLE):
        return Passphrase(text)
    if file := os.environ.get(FILE_VARIABLE):
        return from_file(file)
    return None


def _ask(what: str) -> str:
    if not can_ask():
        raise Failure(
            Exit.LOCKED, "A passphrase is needed, and standard input is not a terminal.",
            f"Give it with --passphrase-file, {FILE_VARIABLE} or {VARIABLE}.",
        )  # fmt: skip
    return str(click.prompt(what, hide_input=True, err=True))


def can_ask() -> bool:
    return sys.stdin.isatty()


def _keep(name: str) -> Any:
    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        ctx.meta.setdefault(_META, {})[name] = value

    return keep


def _meta() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    return context.meta.get(_META, {}) if context else {}
