"""Dead letters by error class, in pages: an operator lists them without reading every letter.

Knows:   a directory of the error classes, and for each class a chain of pages, newest first.
Touches: those rows. A letter's own row says which page lists it.

A page lists `PAGE_LETTERS` letters at most and knows its two neighbours, so every row stays small however many letters
there are, and an emptied page leaves the chain.
"""

from __future__ import annotations

from msgspec import Struct

from nightmail.core.state import ShardState, missing_row
from nightmail.model.letter_rows import LetterClass, LetterClasses, LetterPage
from nightmail.model.rows import Kept, Need

PAGE_LETTERS = 256
DIRECTORY = 0
"""The number of the one row that lists the classes."""


class Listing(Struct, frozen=True):
    """One page of dead letters."""

    offsets: list[int]
    """Newest first."""
    older: int
    """The page to ask for next; 0: this is the last one."""


# --- adding -----------------------------------------------------------------------------------


def needs_add(state: ShardState, offset: int, error: str, missing: list[Need]) -> None:
    """The directory, and the newest page of the class, or the one that is about to be opened, or both."""
    if missing_row(state.letter_classes, Kept.LETTER_CLASSES, DIRECTORY, missing):
        return
    newest = _newest(state, error)
    if newest and missing_row(state.letter_pages, Kept.LETTER_PAGE, newest, missing):
        return
    if not newest or len(state.letter_pages.there(newest).offsets) >= PAGE_LETTERS:
        missing_row(state.letter_pages, Kept.LETTER_PAGE, offset, missing)


def add(state: ShardState, offset: int, error: str) -> int:
    """List the letter at `offset` under its error. Returns its page, which is numbered by its first letter."""
    directory = _directory(state)
    known = directory.classes.setdefault(error, LetterClass())
    page = state.letter_pages.there(known.newest) if known.newest else None
    if page is None or len(page.offsets) >= PAGE_LETTERS:
        if page is not None:
            page.newer = offset
            state.letter_pages.put(known.newest, page, state.offset)
        page, known.newest = LetterPage(error, older=known.newest), offset
    page.offsets.append(offset)
    known.count += 1
    state.letter_pages.put(known.newest, page, state.offset)
    state.letter_classes.put(DIRECTORY, directory, state.offset)
    return known.newest


# --- removing ---------------------------------------------------------------------------------


def needs_remove(state: ShardState, number: int, missing: list[Need]) -> None:
    """The directory, the letter's page, and its neighbours if they are about to become each other's."""
    missing_row(state.letter_classes, Kept.LETTER_CLASSES, DIRECTORY, missing)
    if missing_row(state.letter_pages, Kept.LETTER_PAGE, number, missing):
        return
    page = state.letter_pages.there(number)
    if len(page.offsets) == 1:
        for neighbour in (page.older, page.newer):
            if neighbour:
                missing_row(state.letter_pages, Kept.LETTER_PAGE, neighbour, missing)


def remove(state: ShardState, number: int, offset: int) -> None:
    """Take the letter at `offset` off page `number`: it is settled."""
    page, directory = state.letter_pages.there(number), _directory(state)
    known = directory.classes[page.error]
    page.offsets.remove(offset)
    known.count -= 1
    if page.offsets:
        state.letter_pages.put(number, page, state.offset)
    else:
        _unchain(state, number, page, known)
        if not known.count:
            del directory.classes[page.error]
    state.letter_classes.put(DIRECTORY, directory if directory.classes else None, state.offset)


def _unchain(state: ShardState, number: int, page: LetterPage, known: LetterClass) -> None:
    if page.older:
        older = state.letter_pages.there(page.older)
        older.newer = page.newer
        state.letter_pages.put(page.older, older, state.offset)
    if page.newer:
        newer = state.letter_pages.there(page.newer)
        newer.older = page.older
        state.letter_pages.put(page.newer, newer, state.offset)
    else:
        known.newest = page.older
    state.letter_pages.put(number, None, state.offset)


# --- listing ----------------------------------------------------------------------------------


def needs_counts(state: ShardState) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.letter_classes, Kept.LETTER_CLASSES, DIRECTORY, missing)
    return missing


def counts(state: ShardState) -> dict[str, int]:
    """Error class → how many letters are listed under it."""
    return {error: known.count for error, known in _directory(state).classes.items()}


def needs_listing(state: ShardState, error: str, number: int) -> list[Need]:
    missing = needs_counts(state)
    if not missing and (number := number or _newest(state, error)):
        missing_row(state.letter_pages, Kept.LETTER_PAGE, number, missing)
    return missing


def listing(state: ShardState, error: str, number: int = 0) -> Listing:
    """A page of the letters of one class: the newest, or the one that the page before it has named.

    A page that was emptied since it was named is an empty list; the caller begins again with the newest.
    """
    number = number or _newest(state, error)
    page = state.letter_pages[number] if number else None
    if page is None or page.error != error:
        return Listing([], 0)
    return Listing(page.offsets[::-1], page.older)


def _newest(state: ShardState, error: str) -> int:
    known = _directory(state).classes.get(error)
    return known.newest if known else 0


def _directory(state: ShardState) -> LetterClasses:
    return state.letter_classes[DIRECTORY] or LetterClasses()
