"""The operator's token: from the settings, or made once and kept in the data folder.

Touches: the file operator.token, readable by its owner only.
Never:   logs it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from nightmail.engine.ports import Unwritable

from .config import OperatorSettings

FILE_NAME = "operator.token"


def operator_token(settings: OperatorSettings, folder: Path) -> str:
    """Raises Unwritable if it can neither be read nor made."""
    if settings.token:
        return settings.token
    file = folder / FILE_NAME
    try:
        if file.exists() and (token := file.read_text("ascii").strip()):
            return token
        token = secrets.token_urlsafe(32)
        _write(file, token)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Unwritable(f"{file} can neither be read nor made: {why}") from error
    return token


def _write(file: Path, token: str) -> None:
    """All of it or nothing: a start that is cut off must not leave half a token."""
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, token.encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    draft.rename(file)
