"""Secrets of the server: from the settings, or made once and kept in the data folder.

Touches: one file for each, readable by its owner only.
Never:   logs one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from nightmail.engine.durable import sync_folder
from nightmail.engine.ports import Unwritable


def secret_from(given: str, file: Path) -> str:
    """The secret from the settings, or else from `file`, which is made if it is missing. Raises Unwritable."""
    if given:
        return given
    try:
        if file.exists() and (secret := file.read_text("ascii").strip()):
            return secret
        secret = secrets.token_urlsafe(32)
        _write(file, secret)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Unwritable(f"{file} can neither be read nor made: {why}") from error
    return secret


def _write(file: Path, secret: str) -> None:
    """All of it or nothing: a start that is cut off must not leave half a secret."""
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, secret.encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    draft.rename(file)
    sync_folder(file.parent)
