"""What opens a backup, from the person at the command line: a recovery code, or a passphrase.

    --secret-file FILE  >  NIGHTMAIL_BACKUP_SECRET  >  a prompt

Never:   takes either as an argument, because other processes can read a command line; or echoes a passphrase.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from nightmail.client.backup.looking import needed_for
from nightmail.client.backup.secret import PASSPHRASE, BackupSecret, as_typed, is_code

from .errors import Exit, Failure
from .unlocking import can_ask, from_file

VARIABLE = "NIGHTMAIL_BACKUP_SECRET"


def secret_file_option(command: Any) -> Any:
    return click.option(
        "--secret-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help=f"File containing the recovery code or the passphrase of the backup; also {VARIABLE}.",
    )(command)  # fmt: skip


def secret_of(file: Path, secret_file: str | None) -> BackupSecret:
    """What opens this backup. Raises Failure, BackupError."""
    kept_by = needed_for(file)
    if (text := _given(secret_file)) is None:
        text = _ask(kept_by.capitalize(), hidden=kept_by == PASSPHRASE)
    return as_typed(kept_by, text)


def new_passphrase(secret_file: str | None) -> BackupSecret:
    """Asked for twice. Raises Failure."""
    if (text := _given(secret_file)) is None:
        text = _ask("New passphrase of the backup", hidden=True)
        if _ask("Repeat it", hidden=True) != text:
            raise Failure(Exit.LOCKED, "The two passphrases differ.", "Nothing was changed.")
    return as_typed(PASSPHRASE, text)


def shown(secret: BackupSecret) -> str | None:
    """The recovery code, four words to a line; None: it is a passphrase, which its owner knows."""
    if not is_code(secret):
        return None
    words = secret.text.split()
    numbered = [f"{place:2}. {word:10}" for place, word in enumerate(words, 1)]
    return "\n".join("  ".join(numbered[at : at + 4]).rstrip() for at in range(0, len(numbered), 4))


def _given(secret_file: str | None) -> str | None:
    return from_file(secret_file).text if secret_file else os.environ.get(VARIABLE)


def _ask(what: str, *, hidden: bool) -> str:
    if not can_ask():
        raise Failure(
            Exit.LOCKED, f"{what} is needed, and standard input is not a terminal.",
            f"Give it with --secret-file or {VARIABLE}.",
        )  # fmt: skip
    return str(click.prompt(what, hide_input=hidden, err=True))
