"""What is remembered of groups. `rows.py` says what holds for every row.

A group is several rows, because they change at different times: its head with every message, the roster with
membership, each member with what that member acknowledges.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct, field

from .group_chain import NO_HEAD
from .roster import GroupSettings, Member, Role
from .spans import Spans


class MemberState(IntEnum):
    """What became of an account that the chain names as a member. The numbers are on disk: only ever add."""

    INVITED = 0
    """Its shard was asked."""
    JOINED = 1
    REFUSED = 2
    """Its shard said no. Nobody is told why."""
    SUSPENDED = 3
    """The account was registered again: an admin must add it under its new key."""
    CLOSED = 4
    """The account ended."""


class FanOut(IntEnum):
    """Where a group's entries go. The numbers are on disk: only ever add."""

    WRITE = 0
    """Into every mailbox."""
    HYBRID = 1
    """Into the group's log. News of it carries the entry."""
    READ = 2
    """Likewise, but news carries only how far the log has come."""


class Group(Struct, array_like=True):
    """What changes with every message. On the group's shard."""

    genesis: bytes
    """The hash of the first change: the same one repeated is the same group."""
    head: bytes = NO_HEAD
    """The hash of the newest change."""
    length: int = 0
    """How many changes the chain has."""
    epoch: int = 0
    """Grows with every change of the chain, and of the devices of those who have joined."""
    seq: int = 0
    """The newest `group_seq`."""
    at: int = 0
    """The newest stamp; the next is later."""
    joined: int = 0
    """How many members have joined."""
    settings: GroupSettings = GroupSettings()
    changes: tuple[int, int] = (0, 0)
    """(since when, by elapsed time; how many): changes of the chain within the hour."""
    delivered: dict[int, Spans] = field(default_factory=dict)
    """Author's account → the numbers that it is to be told of: some device has them since."""
    read: dict[int, Spans] = field(default_factory=dict)
    """Likewise: somebody has read them since."""
    fan_out: FanOut = FanOut.WRITE
    sweeps: bool = False
    """A due item looks at the log."""
    swept: tuple[int, int] = (0, 0)
    """(Account, number): accounts up to here were looked at, and all of them have everything up to that number."""
    leavers: dict[int, int] = field(default_factory=dict)
    """Account → the last number that it was addressed with, until it has fetched it from the log."""
    without_devices: dict[int, int] = field(default_factory=dict)
    """Members that have joined and have no device at present → their revision. Nobody would fetch for them."""


class AtHead(Struct, array_like=True):
    """Devices that have seen everything in a group's log, and are to be told when there is more."""

    devices: dict[int, int] = field(default_factory=dict)
    """Device → the number that it has come to."""
    everybody: bool = False
    """Everybody's: entries have just begun to go to the log."""


class RosterEntry(Struct, array_like=True):
    role: Role
    key: bytes
    """The account's key, as the chain has it."""
    ask: int
    """The index of the change that added it: tells the answers to two additions apart."""
    state: MemberState = MemberState.INVITED
    revision: int = 0
    """Of the account's listed devices, as the group knows them."""


class GroupRoster(Struct, array_like=True):
    """Who the chain says is a member. On the group's shard."""

    members: dict[int, RosterEntry] = field(default_factory=dict)

    def view(self, settings: GroupSettings) -> RosterOfRow:
        return RosterOfRow(self, settings)


class RosterOfRow:
    """A `RosterView` of a row: what the rules of `roster.py` ask."""

    def __init__(self, row: GroupRoster, settings: GroupSettings) -> None:
        self._members, self.settings = row.members, settings

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def admins(self) -> int:
        return sum(entry.role is Role.ADMIN for entry in self._members.values())

    def member(self, account: int) -> Member | None:
        entry = self._members.get(account)
        return Member(account, entry.key, entry.role) if entry else None


class MemberDevice(Struct, array_like=True):
    """One device of a member."""

    since: int
    """The first `group_seq` that it is addressed with."""
    delivered: Spans = field(default_factory=list)
    read: int = 0
    """Everything up to here was read on it."""
    cursor: int = 0
    """Everything up to here was fetched from the group's log, or was not for it."""


class GroupMember(Struct, array_like=True):
    """What a group knows of one account, also after it has left. On the group's shard."""

    joined: int = 0
    """The first `group_seq` of its present membership; 0: it is no member."""
    former: Spans = field(default_factory=list)
    """The numbers of its memberships before."""
    devices: dict[int, MemberDevice] = field(default_factory=dict)
    gone: MemberDevice = field(default_factory=lambda: MemberDevice(0))
    """What devices had that are no more: what was delivered stays delivered."""


class ChainBlob(Struct, array_like=True):
    """One signed change of a group. On the group's shard, under (group, index)."""

    blob: bytes


class AccountGroups(Struct, array_like=True):
    """Which groups an account is in. On the account's shard."""

    groups: dict[int, int] = field(default_factory=dict)
    """Group → the index of the change that added the account."""
    told: int = 0
    """The revision that all of them were told."""
    tellings: tuple[int, int] = (0, 0)
    """(since when, by elapsed time; how many): within the hour."""
    waits: bool = False
    """A due item tells them at the end of the hour."""
