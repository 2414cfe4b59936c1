"""A group, as an app sees it. Values only."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.group_rows import MemberState
from nightmail.model.roster import GroupSettings, Role
from nightmail.model.words import MessageState


class FellowMember(Struct, frozen=True):
    account: int
    handle: str
    role: Role
    state: MemberState
    """As far as this device was told; a member counts as joined until the server says otherwise."""


class Group(Struct, frozen=True):
    id: int
    name: str
    standing: GroupStanding
    """What this account is in it."""
    role: Role | None
    """Of this account; None: it is no member."""
    settings: GroupSettings
    members: tuple[FellowMember, ...]
    """By handle."""
    picture: bytes = b""
    joined_at: int = 0

    @property
    def is_joined(self) -> bool:
        return self.standing is GroupStanding.JOINED

    def __repr__(self) -> str:
        return f"<group {self.id:x}: {len(self.members)} members>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", f"{self.id:x}"), ("members", len(self.members))]


class SeenBy(Struct, frozen=True):
    """Who has a message of this account, and who has read it."""

    delivered: int
    """How many members have it, those who have read it among them."""
    read: int
    of: int
    """How many members it was for."""
    members: dict[int, MessageState]
    """Account → what became of it there. Account 0 in a group that shows only whether anybody has it."""
