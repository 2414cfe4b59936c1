"""What is remembered of dead letters. `rows.py` says what holds for every row."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct, field


class LetterStatus(IntEnum):
    """What became of a dead letter. The numbers are on disk: only ever add."""

    WAITING = 0
    REPLAYED = 1
    DISCARDED = 2
    EXPIRED = 3
    """Nobody has settled it in time."""
    DELIVERED = 4
    """Of a call: it has succeeded after all."""


class DeadLetter(Struct, array_like=True):
    """A record that the fold could not take: kept, so that it blocks nothing and is not lost."""

    record: bytes
    errors: list[str]
    """What went wrong, for the record itself or for each that followed from it. The first is its error class."""
    at: int
    page: int = 0
    """The page that lists it; 0: none, it was buried in fold 1."""
    status: LetterStatus = LetterStatus.WAITING
    settled_at: int = 0
    stamp: int = 0
    """Of a message that took its number when it was buried: it is delivered under this stamp, or fails. 0: of none."""
    account: int = 0
    """Of a failed call: whose it is."""
    serial: int = 0
    """Likewise: which of the account's schedules."""
    retry_count: int = 0
    first_attempt: int = 0
    last_attempt: int = 0
    fold: int = 0
    """The fold that buried it; 0: one before 5."""
    device: int = 0
    """Of a push that failed: whom it was to wake."""
    group_seq: int = 0
    """Of a message to a group that took its number: the group's number, which it keeps."""


class LetterClass(Struct, array_like=True):
    """The dead letters of one error class."""

    count: int = 0
    newest: int = 0
    """The newest page."""


class LetterClasses(Struct, array_like=True):
    """Which error classes there are dead letters of."""

    classes: dict[str, LetterClass] = field(default_factory=dict)


class LetterPage(Struct, array_like=True):
    """Some dead letters of one error class (core/letters/pages.py)."""

    error: str
    offsets: list[int] = field(default_factory=list)
    """Oldest first."""
    older: int = 0
    newer: int = 0
