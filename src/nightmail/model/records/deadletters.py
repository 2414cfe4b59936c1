"""Dead letters: records that could not be applied, calls that failed for good, and what becomes of them."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.ids import SERVER

from .body import Author, Body


class LetterExpired(Body, frozen=True, tag=53):
    """The message that was buried at `offset` was not delivered in time: it has failed. Or the letter was settled long
    ago, and is forgotten."""

    said_by = Author.FOLD
    since = 2

    offset: int
    planned: int = 0
    """When, by elapsed time; 0: before fold 4."""

    def home(self, by: int) -> int:
        return SERVER


class Replayed(Body, frozen=True, tag=122):
    """What could not be delivered is tried once more. Appended to the log of the shard that has the letter.

    Answered by `Done`, or refused: `unknown_letter`, `letter_settled`, `not_replayable`.
    """

    said_by = Author.OPERATOR | Author.FOLD
    since = 5

    offset: int

    def home(self, by: int) -> int:
        return SERVER


class Discarded(Body, frozen=True, tag=123):
    """It is not tried again: its sender hears that it has failed. Answered as `Replayed` is."""

    said_by = Author.OPERATOR | Author.FOLD
    since = 5

    offset: int

    def home(self, by: int) -> int:
        return SERVER


class LettersSettled(Body, frozen=True, tag=124):
    """Several at once, each by a record of its own. Those that cannot be replayed stay as they are.

    To settle all letters of an error, or of a time, an operator lists them by page and says this for each page.
    """

    said_by = Author.OPERATOR
    since = 5

    offsets: tuple[int, ...]
    replay: bool
    """Otherwise they are discarded."""

    def home(self, by: int) -> int:
        return SERVER


__all__ = ("Discarded", "LetterExpired", "LettersSettled", "Replayed")
Bodies: TypeAlias = LetterExpired | Replayed | Discarded | LettersSettled
