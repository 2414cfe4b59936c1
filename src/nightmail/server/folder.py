"""Checking, backing up and restoring a data folder, for the command line."""

from __future__ import annotations

from nightmail.engine.folder_copy import Checked, back_up, check_whole, restore
from nightmail.engine.ports import EngineError

from .process import EXIT_CODES

__all__ = ["Checked", "EngineError", "back_up", "check_whole", "exit_code", "restore"]


def exit_code(error: EngineError) -> int:
    """The same one that `serve` would end with."""
    return EXIT_CODES.get(type(error), EXIT_CODES[EngineError])
