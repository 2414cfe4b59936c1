"""Groups, between shards: who is a member, what is filed for members, and what became of it."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.ids import account_of
from nightmail.model.words import Kind, Lane, MessageState

from .body import Author, Body
from .messages import Envelope


class MemberAsked(Body, frozen=True, tag=80):
    """To an account's shard: a group wants to have it as a member."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    account: int
    ask: int
    adder: int
    """The account that adds it."""

    def home(self, by: int) -> int:
        return self.account


class MemberAnswered(Body, frozen=True, tag=81):
    """To a group's shard: the account joins, with these devices; or it does not, and nobody is told why."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    account: int
    ask: int
    joined: bool
    revision: int
    devices: tuple[int, ...]
    adder: int

    def home(self, by: int) -> int:
        return self.group


class MemberGone(Body, frozen=True, tag=82):
    """To an account's shard: it is no member of the group any more."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    account: int

    def home(self, by: int) -> int:
        return self.account


class MemberListed(Body, frozen=True, tag=83):
    """To a group's shard: the listed devices of a member have changed."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    account: int
    ask: int
    revision: int
    devices: tuple[int, ...]
    again: bool
    """The account was registered again: its key is another one."""
    closed: bool

    def home(self, by: int) -> int:
        return self.group


class Relisted(Body, frozen=True, tag=96):
    """The set of an account's listed devices may have changed: its groups are told."""

    said_by = Author.FOLD
    since = 4

    account: int
    again: bool = False
    """The account was registered again."""
    fired: bool = False
    """The hour has ended in which its groups were told too often."""

    def home(self, by: int) -> int:
        return self.account


class Fanned(Body, frozen=True, tag=84):
    """To the shard of some members: file this for their devices."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    by: int
    """The device that wrote it; 0: it is a notice."""
    lane: Lane
    n: int
    id: str
    tag: bytes
    kind: Kind
    life_ms: int
    at: int
    group_seq: int
    epoch: int
    audience: tuple[tuple[int, int], ...]
    """(Account, the revision of its devices that the group knows)."""
    ciphertext: bytes

    def home(self, by: int) -> int:
        return self.audience[0][0]


class Enveloped(Body, frozen=True, tag=85):
    """To the shard of some members: file these envelopes for the devices that they name."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    by: int
    lane: Lane
    n: int
    id: str
    tag: bytes
    kind: Kind
    of: str | None
    of_seq: int
    life_ms: int
    at: int
    epoch: int
    envelopes: tuple[Envelope, ...]

    def home(self, by: int) -> int:
        return account_of(self.envelopes[0].device)


class GroupDelivered(Body, frozen=True, tag=86):
    """To a group's shard: these numbers are durable on a device of a member."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    device: int
    numbers: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    """(Author's account, spans of `group_seq`); of notices the author is 0."""

    def home(self, by: int) -> int:
        return self.group


class GroupWasRead(Body, frozen=True, tag=87):
    """To a group's shard: a member who does not keep it private has read everything up to `upto` on a device."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    device: int
    upto: int
    authors: tuple[int, ...]

    def home(self, by: int) -> int:
        return self.group


class GroupReceipted(Body, frozen=True, tag=88):
    """To an author's shard: more members have, or have read, messages with these numbers. Which, is a question."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    account: int
    state: MessageState
    at: int
    numbers: tuple[tuple[int, int], ...]

    def home(self, by: int) -> int:
        return self.account


class GroupMarked(Body, frozen=True, tag=89):
    """To the shard of some members: the group's log has grown, and these have not seen it."""

    said_by = Author.SHARD | Author.FOLD
    since = 4

    group: int
    group_seq: int
    audience: tuple[tuple[int, int], ...]
    """(Account, revision): all its devices."""
    devices: tuple[int, ...]
    """Or single ones."""

    def home(self, by: int) -> int:
        return self.audience[0][0] if self.audience else account_of(self.devices[0])


class GroupSwept(Body, frozen=True, tag=98):
    """Some members' cursors are looked at: what everybody has leaves the group's log."""

    said_by = Author.FOLD
    since = 4

    group: int
    fired: bool = True
    """It was time to; otherwise the log holds too much."""

    def home(self, by: int) -> int:
        return self.group


class GroupMissed(Body, frozen=True, tag=99):
    """A device is no more, and has not fetched everything from the group's log: authors learn what it has missed."""

    said_by = Author.FOLD
    since = 4

    group: int
    device: int
    after: int
    """What it had fetched, or was told to its authors before."""

    def home(self, by: int) -> int:
        return self.group


class GroupNews(Body, frozen=True, tag=97):
    """What became of a group's messages since the last news goes to their authors."""

    said_by = Author.FOLD
    since = 4

    group: int

    def home(self, by: int) -> int:
        return self.group


__all__ = (
    "Enveloped", "Fanned", "GroupDelivered", "GroupMarked", "GroupMissed", "GroupNews", "GroupReceipted", "GroupSwept",
    "GroupWasRead", "MemberAnswered",
    "MemberAsked", "MemberGone", "MemberListed", "Relisted",
)  # fmt: skip
ToldOfGroups: TypeAlias = (
    MemberAsked | MemberAnswered | MemberGone | MemberListed
    | Fanned | Enveloped | GroupDelivered | GroupWasRead | GroupReceipted | GroupMarked
)  # fmt: skip
"""What shards tell each other about groups."""
Bodies: TypeAlias = (
    MemberAsked | MemberAnswered | MemberGone | MemberListed
    | Fanned | Enveloped | GroupDelivered | GroupWasRead | GroupReceipted | GroupMarked
    | Relisted | GroupMissed | GroupNews | GroupSwept
)  # fmt: skip
