"""What the SQLite store notes for the next backup. A part of `sqlite.py`, whose database it shares.

Knows:   the table `unsaved`, and whether anything is noted in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from .changes_port import Change, Saved


class SqliteChanges(ABC):
    """The part of a `ChangeStore` that notes changes."""

    _newest_change: int | None = None
    """The number of the newest change that was noted; 0: nothing is to be noted; None: look it up."""

    @abstractmethod
    def _write(self, sql: str, values: tuple[Any, ...]) -> None: ...

    @abstractmethod
    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]: ...

    def note_changes(self) -> None:
        # The first row belongs to no change: it says that changes are noted.
        self._write("DELETE FROM unsaved", ())
        self._write("INSERT INTO unsaved VALUES ('', 1)", ())
        self._newest_change = 1

    def changes(self) -> tuple[int, list[Change]]:
        rows = self._read("SELECT name FROM unsaved WHERE name <> '' ORDER BY name")
        return self._last_change(), [Change(Saved(name[0]), name[1:]) for (name,) in rows]

    def drop_changes(self, upto: int) -> None:
        self._write("DELETE FROM unsaved WHERE change <= ? AND name <> ''", (upto,))
        self._write("UPDATE unsaved SET change = max(change, ?) WHERE name = ''", (upto,))

    def _changed(self, kind: Saved, key: str | int) -> None:
        if newest := self._last_change():
            self._newest_change = newest + 1
            self._write("REPLACE INTO unsaved VALUES (?, ?)", (f"{kind}{key}", newest + 1))

    def _unchanged(self, kind: Saved, key: str | int) -> None:
        """It was never in a backup, and is not there any more."""
        if self._last_change():
            self._write("DELETE FROM unsaved WHERE name = ?", (f"{kind}{key}",))

    def _last_change(self) -> int:
        newest = self._newest_change
        if newest is None:
            newest = self._newest_change = int(self._read("SELECT max(change) FROM unsaved")[0][0] or 0)
        return newest
