"""What an app is told about groups. A message in a group is a `Message`, whose `group` is set."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class UpdateKind(StrEnum):
    """What happened to a group."""

    CREATED = "created"
    JOINED = "joined"
    """This account is in it, and this device knows its members."""
    ADDED = "added"
    REMOVED = "removed"
    LEFT = "left"
    ROLE = "role"
    SETTINGS = "settings"
    RENAMED = "renamed"
    PICTURE = "picture"


class GroupEvent(Struct, frozen=True):
    """Something happened in a group."""

    group: int
    name: str
    """The group's, as its members call it."""


class GroupUpdated(GroupEvent, frozen=True):
    """A change that this device believes: a member signed it."""

    what: UpdateKind
    by: int
    """The account that made it."""
    by_handle: str
    accounts: tuple[int, ...] = ()
    """Whom it is about."""
    handles: tuple[str, ...] = ()
    timer_ms: int = 0
    """Of new settings: how long messages live; 0: they stay."""


class GroupChangeRefused(GroupEvent, frozen=True):
    """The server shows a change of the group that nobody may believe: it was not made."""

    by: int
    """The account that the server says made it; 0: not known."""
    by_handle: str
    why: str


class GroupBroken(GroupEvent, frozen=True):
    """The server shows this device another history of the group than its members have, or keeps a part back. Nothing is
    written to the group before a member has said again where it stands."""

    why: str


class MembersDiffer(GroupEvent, frozen=True):
    """Somebody wrote to other members than this device knows of: the server shows two groups under one name."""

    by: int
    by_handle: str
    message_id: str


class MemberMissing(GroupEvent, frozen=True):
    """The server says that a member does not take part: `state` is refused, suspended or closed."""

    account: int
    handle: str
    state: str


class MemberJoined(GroupEvent, frozen=True):
    """The server says that a member takes part from now on."""

    account: int
    handle: str


class GroupReceipt(GroupEvent, frozen=True):
    """More members have, or have read, a message of this account."""

    message_id: str
    delivered: int
    """How many have it, those who have read it among them."""
    read: int
    of: int
    """How many it was for. 1 in a group that shows only whether anybody has it."""
