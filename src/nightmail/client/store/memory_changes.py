"""What the store in memory notes for the next backup. A part of `memory.py`, whose journal it shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from .changes_port import Change, Saved


class MemoryChanges(ABC):
    """The part of a `ChangeStore` that notes changes."""

    @abstractmethod
    def _table(self, name: str) -> dict[Any, Any]: ...

    @abstractmethod
    def _put(self, name: str, key: Any, value: Any) -> None: ...

    @abstractmethod
    def _drop(self, name: str, key: Any) -> None: ...

    def note_changes(self) -> None:
        for name in list(self._table("unsaved")):
            self._drop("unsaved", name)
        self._put("meta", "newest change", 1)

    def changes(self) -> tuple[int, list[Change]]:
        table = cast("dict[str, int]", self._table("unsaved"))
        return self._last_change(), [Change(Saved(name[0]), name[1:]) for name in sorted(table)]

    def drop_changes(self, upto: int) -> None:
        for name, change in list(self._table("unsaved").items()):
            if change <= upto:
                self._drop("unsaved", name)

    def _changed(self, kind: Saved, key: str | int) -> None:
        if newest := self._last_change():
            self._put("meta", "newest change", newest + 1)
            self._put("unsaved", f"{kind}{key}", newest + 1)

    def _unchanged(self, kind: Saved, key: str | int) -> None:
        """It was never in a backup, and is not there any more."""
        if self._last_change():
            self._drop("unsaved", f"{kind}{key}")

    def _last_change(self) -> int:
        return cast("int", self._table("meta").get("newest change", 0))
