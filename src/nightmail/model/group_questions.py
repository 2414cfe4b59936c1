"""What may be asked about a group, and the answers. All of it is values, so that a question can travel between nodes.

Knows:   the words of questions and answers. Who may ask is decided where the rows are (`core/groups/answering.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from nightmail.model.refusals.groups import NotMember, UnknownGroup

from .group_rows import FanOut, MemberState
from .roster import GroupReceipts, GroupSettings, Role
from .rows import GroupEntry
from .words import MessageState, Reason


class MemberShown(Struct, frozen=True, array_like=True, gc=False):
    """One member, as the chain names it, and what became of it."""

    account: int
    key: bytes
    """The account's public key."""
    role: Role
    state: MemberState


class LogRun(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Entries `first`, `first + 1`, … of a group's log."""

    first: int
    entries: tuple[GroupEntry, ...]


class LogGap(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Numbers `low` to `high` of a group's log bring this device nothing."""

    low: int
    high: int
    reason: Reason


# --- questions --------------------------------------------------------------------------------


class ChainAsked(Struct, frozen=True):
    """The changes behind index `after`, and the group as it is now."""

    group: int
    device: int
    after: int
    limit: int
    limit_bytes: int


class MembersAsked(Struct, frozen=True):
    """The first `limit` members with account numbers above `after`."""

    group: int
    device: int
    after: int
    limit: int


class LogAsked(Struct, frozen=True):
    """What stands in the log behind `after`, for this device: at most `limit` numbers, about `limit_bytes`."""

    group: int
    device: int
    after: int
    limit: int
    limit_bytes: int


class ReceiptsAsked(Struct, frozen=True):
    """What became of these numbers, for everybody but the asker: of the first ones, about `limit` states in all."""

    group: int
    device: int
    numbers: tuple[int, ...]
    limit: int


class GrowthAsked(Struct, frozen=True):
    """What has come into the log behind `after`, and which of these devices it is for."""

    group: int
    devices: tuple[int, ...]
    after: int
    limit: int
    limit_bytes: int


GroupQuestion: TypeAlias = ChainAsked | MembersAsked | LogAsked | ReceiptsAsked | GrowthAsked


# --- answers ----------------------------------------------------------------------------------


class ChainShown(Struct, frozen=True):
    epoch: int
    head: bytes
    length: int
    seq: int
    fan_out: FanOut
    blobs: tuple[tuple[int, bytes], ...]


class MembersShown(Struct, frozen=True):
    epoch: int
    head: bytes
    length: int
    settings: GroupSettings
    members: tuple[MemberShown, ...]
    more: bool


class ToldSoFar(Struct, frozen=True):
    """How much the group's shard had told others when it was asked: what it shows may need keys that are among it."""

    source: int
    """The group's shard."""
    counts: Mapping[int, int]
    """Other shard → how many things."""


class LogShown(Struct, frozen=True):
    items: tuple[LogRun | LogGap, ...]
    head: int
    """The last number that the device can fetch."""
    is_member: bool
    """False: it has left, and `head` is its end."""
    told: ToldSoFar


class ReceiptsShown(Struct, frozen=True):
    receipts: GroupReceipts
    states: tuple[tuple[int, tuple[tuple[int, MessageState], ...]], ...]


class GrowthShown(Struct, frozen=True):
    items: tuple[LogRun, ...]
    """Everything behind `after`; empty where it is too much, or the news of it does not carry it."""
    head: int
    fan_out: FanOut
    whole: tuple[int, ...]
    """Devices that all of `items` are for."""
    heads: Mapping[int, int]
    """Other device that may fetch → the last number that it can fetch. One that is in neither is no member."""
    told: ToldSoFar


GroupShown: TypeAlias = ChainShown | MembersShown | LogShown | ReceiptsShown | GrowthShown
GroupAnswer: TypeAlias = GroupShown | UnknownGroup | NotMember
