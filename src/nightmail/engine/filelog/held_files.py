"""The segments of a log that a server may be writing to and trimming, held open.

Knows:   that an open file stays readable after its name is removed.
Touches: nothing; it only reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from .files import File, OsFile
from .segment import number_of


class HeldFiles:
    """Every segment that there was when `hold` was called. It may be called again, for newer ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptors: dict[str, int] = {}

    def hold(self) -> None:
        for name in os.listdir(self._folder):
            if number_of(name) is not None and name not in self._descriptors:
                try:
                    self._descriptors[name] = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    continue  # trimmed meanwhile, so a checkpoint has it

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def names(self) -> list[str]:
        return sorted(self._descriptors)

    def open(self, name: str) -> File:
        if name not in self._descriptors:
            raise FileNotFoundError(name)
        return _Held(self._descriptors[name])

    def create(self, name: str, size: int) -> NoReturn:
        raise PermissionError(f"{name} is only read")

    def remove(self, name: str) -> NoReturn:
        raise PermissionError(f"{name} is only read")


class _Held(OsFile):
    """Its descriptor is closed with all others."""

    def close(self) -> None:
        pass
