"""The rows that a client keeps of groups, as values.

Knows:   what each field means. Members and chains have rows of their own, because they change at other times.
Never:   shows a name or a key in a repr.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import Struct

from nightmail.model.group_rows import FanOut


class GroupStanding(IntEnum):
    """What this account is in a group. The numbers are in the store: only ever add."""

    MAKING = 0
    """This device makes the group, and the server has not answered."""
    INVITED = 1
    """The server says that this account is in it, and no member has said what it is."""
    JOINED = 2
    LEFT = 3
    REMOVED = 4
    """Somebody has removed this account."""
    BROKEN = 5
    """The server shows another chain than this device followed: nothing is written until a member welcomes it again."""


class HeadAt(Struct, frozen=True, array_like=True):
    """The chain after one change."""

    index: int
    head: bytes
    seq: int = 0
    """The group's number of the change, once its notice came."""


class LeftAt(Struct, frozen=True, array_like=True):
    """Somebody who is no member any more: what was written before may still come."""

    index: int
    """Of the change that ended it."""
    at: int
    """When this device learned it."""


class GroupRow(Struct, frozen=True, kw_only=True):
    """What this device knows of a group, except its members."""

    group: int
    standing: GroupStanding
    genesis: bytes = b""
    """Empty: nobody has welcomed this device."""
    index: int = 0
    """Of the newest change that was followed."""
    epoch: int = 0
    """As the server counts it; as far as it is known here."""
    name: str = ""
    named_at: int = 0
    """Stamp of the message that gave it this name; 0: that of the welcome."""
    picture: bytes = b""
    pictured_at: int = 0
    joined_at: int = 0
    heads: tuple[HeadAt, ...] = ()
    """The chain after its newest changes, oldest first."""
    departures: dict[int, LeftAt] = {}
    """Account → since when it is no member, of the newest that left."""
    states: dict[int, int] = {}
    """Account → what the server says became of a member (`MemberState`) that has not joined."""
    to_welcome: tuple[int, ...] = ()
    """Accounts that this device added, and tells where to begin once they have joined."""
    fan_out: FanOut = FanOut.WRITE
    cursor: int = 0
    """Everything in the group's log up to here is stored, or was not for this device."""
    head_seq: int = 0
    """How far the log has come, as the server says."""
    unreadable: tuple[int, ...] = ()
    """Numbers of the log that could not be opened, until that is acknowledged."""
    reads_upto: int = 0
    """What the server was told that the person has read."""

    @property
    def head(self) -> bytes:
        return self.heads[-1].head if self.heads else b""

    def __repr__(self) -> str:
        return f"<group {self.group:x}: {self.standing.name.lower()}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("group", f"{self.group:x}"), ("standing", self.standing.name.lower())]


class Holder(Struct, frozen=True):
    """A device that was handed this device's chain in a group, or may have been."""

    device: int
    registration: int
    lacks: bool = False
    """It does not have it: it must be handed on again."""
    tries: int = 1
    """How often it was handed on."""
