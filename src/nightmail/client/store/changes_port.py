"""The port to what changed since the last backup. A part of `Store`, whose transaction it shares.

Knows:   the names of rows that a backup holds. Whatever writes or deletes such a row notes its name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from nightmail.client.messages import Message


class Saved(StrEnum):
    """Rows that a backup holds. The letters are in the store."""

    MESSAGE = "m"
    CONVERSATION = "p"
    CONTACT = "c"
    TRUSTED = "t"
    GROUP = "g"


class Change(NamedTuple):
    kind: Saved
    key: str
    """The id of a message; otherwise a number in decimal digits."""


class ChangeStore(Protocol):
    def note_changes(self) -> None:
        """Note from now on what changes, beginning with nothing. Until this is called nothing is noted."""
        ...

    def changes(self) -> tuple[int, list[Change]]:
        """What changed and was not dropped, by kind and key; and the number of the newest change."""
        ...

    def drop_changes(self, upto: int) -> None:
        """These are saved. What changed again since stays."""
        ...

    def messages_after(self, message_id: str, limit: int) -> list[Message]:
        """All messages, by id, a page at a time. They may change between two pages."""
        ...

    def past_messages(self) -> int:
        """How many messages a backup would hold: sent, received or failed, and without a timer."""
        ...
