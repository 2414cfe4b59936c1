"""The operator's token: from the settings, or made once and kept in the data folder."""

from __future__ import annotations

from pathlib import Path

from .config import OperatorSettings
from .secret_files import secret_from

FILE_NAME = "operator.token"


def operator_token(settings: OperatorSettings, folder: Path) -> str:
    """Raises Unwritable if it can neither be read nor made."""
    return secret_from(settings.token, folder / FILE_NAME)
