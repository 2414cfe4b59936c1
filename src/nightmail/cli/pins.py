"""A registration lock's PIN, from a file, the environment, or the person.

    --pin-file FILE  >  NIGHTMAIL_PIN  >  asked, without echo

Never:   takes a PIN as an argument: every process of the machine can read those.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from .failing import Exit, Failure
from .unlocking import can_ask

VARIABLE = "NIGHTMAIL_PIN"


def pin_file_option(command: Any) -> Any:
    return click.option(
        "--pin-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help=f"Where the PIN stands; also {VARIABLE}. Otherwise it is asked for.",
    )(command)  # fmt: skip


def given_pin(pin_file: str | None) -> str:
    """Empty: none was given."""
    if not pin_file:
        return os.environ.get(VARIABLE, "")
    try:
        return Path(pin_file).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise Failure(Exit.USAGE, f"{pin_file} cannot be read as a PIN.") from None


def ask_pin(what: str, *, twice: bool = False) -> str:
    if not can_ask():
        raise Failure(
            Exit.LOCKED, "A PIN is needed, and nobody can be asked.", f"Give it with --pin-file or {VARIABLE}."
        )
    pin = str(click.prompt(what, hide_input=True, err=True))
    if twice and click.prompt("The same again", hide_input=True, err=True) != pin:
        raise Failure(Exit.LOCKED, "The two are not the same.", "Nothing was changed.")
    return pin
