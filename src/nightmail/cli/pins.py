"""Reads the PIN of a registration lock from a file, the environment or a prompt.

    --pin-file FILE  >  NIGHTMAIL_PIN  >  a prompt without echo

Never:   takes a PIN as an argument, because other processes can read a command line.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from .errors import Exit, Failure
from .unlocking import can_ask

VARIABLE = "NIGHTMAIL_PIN"


def pin_file_option(command: Any) -> Any:
    return click.option(
        "--pin-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help=f"File containing the PIN; also {VARIABLE}. By default, you are asked for it.",
    )(command)  # fmt: skip


def given_pin(pin_file: str | None) -> str:
    """The PIN from the file or the environment; empty if there is none."""
    if not pin_file:
        return os.environ.get(VARIABLE, "")
    try:
        return Path(pin_file).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise Failure(Exit.USAGE, f"{pin_file} cannot be read as a PIN.") from None


def ask_pin(what: str, *, twice: bool = False) -> str:
    if not can_ask():
        raise Failure(
            Exit.LOCKED,
            "A PIN is needed, and standard input is not a terminal.",
            f"Give it with --pin-file or {VARIABLE}.",
        )
    pin = str(click.prompt(what, hide_input=True, err=True))
    if twice and click.prompt("Repeat it", hide_input=True, err=True) != pin:
        raise Failure(Exit.LOCKED, "The two PINs differ.", "Nothing was changed.")
    return pin
