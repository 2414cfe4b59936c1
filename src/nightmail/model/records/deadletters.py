"""Dead letters: records that could not be applied, and what becomes of them."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.ids import SERVER

from .body import Author, Body


class LetterExpired(Body, frozen=True, tag=53):
    """The message that was buried at `offset` was not delivered in time: it has failed."""

    said_by = Author.FOLD
    since = 2

    offset: int

    def home(self, by: int) -> int:
        return SERVER


__all__ = ("LetterExpired",)
Bodies: TypeAlias = LetterExpired
