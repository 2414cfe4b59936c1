"""Messages for later, as the fold and shards speak of them: due, fired, settled."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from nightmail.model.schedule_rows import GroupContent, PairContent
from nightmail.model.words import Kind

from .body import Author, Body


class FiringOutcome(IntEnum):
    """What became of a scheduled message where it was fired to. The numbers are in logs: only ever add."""

    FILED = 0
    STALE = 1
    """It is not sealed for the devices that there are, or for the group as it is."""
    REFUSED = 2


class ScheduleLooked(Body, frozen=True, tag=117):
    """It may be time to do something with a schedule: fire it, call again or give it up."""

    said_by = Author.FOLD
    since = 5

    account: int
    serial: int

    def home(self, by: int) -> int:
        return self.account


class Fired(Body, frozen=True, tag=118):
    """To the recipient's shard: the time of a message has come. Taken once, as every forward is."""

    said_by = Author.SHARD | Author.FOLD
    since = 5

    serial: int
    by: int
    to: int
    id: str
    tag: bytes
    kind: Kind
    life_ms: int
    content: PairContent

    def home(self, by: int) -> int:
        return self.to


class GroupFired(Body, frozen=True, tag=119):
    """Likewise, to the group's shard."""

    said_by = Author.SHARD | Author.FOLD
    since = 5

    serial: int
    by: int
    group: int
    id: str
    tag: bytes
    kind: Kind
    life_ms: int
    content: GroupContent

    def home(self, by: int) -> int:
        return self.group


class FiringSettled(Body, frozen=True, tag=120):
    """Back to the author's shard: what became of it."""

    said_by = Author.SHARD | Author.FOLD
    since = 5

    account: int
    serial: int
    outcome: FiringOutcome
    n: int = 0
    """If it was filed: its number in the author's stream."""
    at: int = 0
    """Its stamp."""
    error: str = ""
    """A word, if it was not."""
    group_seq: int = 0
    """If it was filed in a group: its number there."""

    def home(self, by: int) -> int:
        return self.account


class SchedulesEnded(Body, frozen=True, tag=121):
    """An account was closed: what it has scheduled does not happen. One page after the other."""

    said_by = Author.FOLD
    since = 5

    account: int
    page: int

    def home(self, by: int) -> int:
        return self.account


class SchedulesSwept(Body, frozen=True, tag=125):
    """It may be time to forget schedules of a page that have ended long ago."""

    said_by = Author.FOLD
    since = 5

    account: int
    page: int
    at: int
    """The time that it was planned for: if the page has another one, it is looked through then."""

    def home(self, by: int) -> int:
        return self.account


__all__ = (
    "Fired", "FiringOutcome", "FiringSettled", "GroupFired", "ScheduleLooked", "SchedulesEnded", "SchedulesSwept",
)  # fmt: skip
ToldOfSchedules: TypeAlias = Fired | GroupFired | FiringSettled
"""What shards tell each other about messages for later."""
Bodies: TypeAlias = ScheduleLooked | Fired | GroupFired | FiringSettled | SchedulesEnded | SchedulesSwept
