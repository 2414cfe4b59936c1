"""Who is in a group, and who may change that: the rules that the server and every client apply alike.

Knows:   members, roles, settings, and which change is refused why.
Never:   checks a signature: clients do (`e2ee/groups/chain.py`). Never reads a clock.

The rules, as people meet them:

- Everybody may leave. Admins do everything else: add, remove, give roles, change settings.
- A group whose settings let members change things lets them add people and change the timer and the receipts.
  Removing, roles, and who may write or change stay with admins.
- A group with members has an admin. The last one leaves by naming a successor, and cannot resign before that.
- An account that registers again has another key, and is no member under it until an admin adds it again, with that
  key. It comes back without its role: a stolen phone number makes nobody an admin.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from .limits import DAY_MS

MEMBERS_MAX = 5_000
TIMER_MS_MIN, TIMER_MS_MAX = 30_000, 7 * DAY_MS
"""Of disappearing messages. 0 means none, and is not the shortest."""
ACCOUNT_KEY_BYTES = 32
ROSTER_HASH_BYTES = 32
ROSTER_LABEL = b"nightmail/v1/group-roster"
_SETTINGS = struct.Struct(">BBBI")
_MEMBER = struct.Struct(f">Q{ACCOUNT_KEY_BYTES}sB")
_COUNT = struct.Struct(">H")
SETTINGS_BYTES = _SETTINGS.size


class Role(IntEnum):
    """A higher one includes the lower."""

    MEMBER = 1
    ADMIN = 2


class GroupReceipts(IntEnum):
    """What the author of a message learns."""

    EACH_MEMBER = 1
    AT_LEAST_ONE = 2
    NONE = 3


class GroupSettings(Struct, frozen=True, array_like=True, gc=False):
    writers: Role = Role.MEMBER
    """Who may write, at least."""
    changers: Role = Role.ADMIN
    """Who may add people and change timer and receipts, at least."""
    receipts: GroupReceipts = GroupReceipts.EACH_MEMBER
    timer_ms: int = 0

    def encode(self) -> bytes:
        return _SETTINGS.pack(self.writers, self.changers, self.receipts, self.timer_ms)

    @classmethod
    def decode(cls, data: bytes) -> GroupSettings:
        """Raises ValueError, with one sentence; struct.error if the length is wrong."""
        writers, changers, receipts, timer_ms = _SETTINGS.unpack(data)
        if timer_ms and not TIMER_MS_MIN <= timer_ms <= TIMER_MS_MAX:
            raise ValueError(f"a timer is 0 or between {TIMER_MS_MIN} and {TIMER_MS_MAX} ms")
        return cls(Role(writers), Role(changers), GroupReceipts(receipts), timer_ms)


class Member(NamedTuple):
    account: int
    key: bytes
    """The account's public key: under another one, the account is no member."""
    role: Role


class NewMember(NamedTuple):
    account: int
    key: bytes


# --- changes ----------------------------------------------------------------------------------


class Creation(NamedTuple):
    settings: GroupSettings
    members: tuple[NewMember, ...]
    """The creator among them, who is the first admin. Accounts ascend here and below."""


class Addition(NamedTuple):
    members: tuple[NewMember, ...]


class Removal(NamedTuple):
    accounts: tuple[int, ...]


class Departure(NamedTuple):
    """The acting account leaves."""

    successor: int = 0
    """Who becomes admin with it; 0: nobody."""


class RoleChange(NamedTuple):
    account: int
    role: Role


class SettingsChange(NamedTuple):
    settings: GroupSettings


GroupChange: TypeAlias = Creation | Addition | Removal | Departure | RoleChange | SettingsChange


class ChangeFault(IntEnum):
    """Why a change is refused."""

    NOT_A_MEMBER = 1
    """The acting account is no member."""
    NOT_AN_ADMIN = 2
    """Only admins may do this."""
    ALREADY_A_MEMBER = 3
    """It adds a member under the key that the member has, or the acting account."""
    NO_SUCH_MEMBER = 4
    """It names an account that is no member."""
    REMOVES_ITSELF = 5
    """An account leaves by a departure."""
    LAST_ADMIN = 6
    """It would leave members without an admin."""
    TOO_MANY_MEMBERS = 7
    ALREADY_CREATED = 8
    ROSTER_DIFFERS = 9
    """The roster after it is not the one that its author signed."""

    # --- what only clients see ---
    SIGNER_UNKNOWN = 10
    """The account's signed device list does not name the acting device."""
    OTHER_ACCOUNT_KEY = 11
    """The acting account has another key than the roster says: it registered again."""
    BAD_SIGNATURE = 12


# --- the roster -------------------------------------------------------------------------------


class RosterView(Protocol):
    """What the rules ask of a roster, whether it is in memory or in rows."""

    @property
    def settings(self) -> GroupSettings: ...
    @property
    def size(self) -> int: ...
    @property
    def admins(self) -> int:
        """How many there are."""
        ...

    def member(self, account: int) -> Member | None: ...


class Roster(Struct, frozen=True, array_like=True):
    settings: GroupSettings
    members: dict[int, Member]

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def admins(self) -> int:
        return sum(member.role is Role.ADMIN for member in self.members.values())

    def member(self, account: int) -> Member | None:
        return self.members.get(account)

    def hash(self) -> bytes:
        """SHA-256 over the settings and all members, accounts ascending."""
        members = b"".join(_MEMBER.pack(*member) for _, member in sorted(self.members.items()))
        head = ROSTER_LABEL + b"\0" + self.settings.encode() + _COUNT.pack(len(self.members))
        return hashlib.sha256(head + members).digest()


def may_write(roster: RosterView, account: int) -> bool:
    member = roster.member(account)
    return member is not None and member.role >= roster.settings.writers


def why_refused(roster: RosterView, actor: int, change: GroupChange) -> ChangeFault | None:
    """Whether this account may make this change. Asks for no member but the actor and those the change names."""
    acting = roster.member(actor)
    if acting is None:
        return ChangeFault.NOT_A_MEMBER
    match change:
        case Creation():
            return ChangeFault.ALREADY_CREATED
        case Departure(successor):
            return _why_not_leave(roster, acting, successor)
        case Addition(members):
            return _why_not_add(roster, acting, members)
        case SettingsChange(settings):
            return None if acting.role >= _changer(roster.settings, settings) else ChangeFault.NOT_AN_ADMIN
        case Removal() | RoleChange() if acting.role is not Role.ADMIN:
            return ChangeFault.NOT_AN_ADMIN
        case Removal(accounts):
            if actor in accounts:
                return ChangeFault.REMOVES_ITSELF
            return None if all(map(roster.member, accounts)) else ChangeFault.NO_SUCH_MEMBER
        case RoleChange(account, role):
            member = roster.member(account)
            if member is None:
                return ChangeFault.NO_SUCH_MEMBER
            resigns = member.role is Role.ADMIN and role is not Role.ADMIN
            return ChangeFault.LAST_ADMIN if resigns and roster.admins == 1 else None


def created(creator: int, creation: Creation) -> Roster:
    """The first roster of a group."""
    members = {
        account: Member(account, key, Role.ADMIN if account == creator else Role.MEMBER)
        for account, key in creation.members
    }
    return Roster(creation.settings, members)


def changed(roster: Roster, actor: int, change: GroupChange) -> Roster | ChangeFault:
    """The roster after a change, or why there is none."""
    if fault := why_refused(roster, actor, change):
        return fault
    settings, members = roster.settings, dict(roster.members)
    match change:
        case Creation():
            raise AssertionError("refused above")
        case Addition(added):
            members |= {account: Member(account, key, Role.MEMBER) for account, key in added}
        case Removal(accounts):
            for account in accounts:
                del members[account]
        case Departure(successor):
            del members[actor]
            if successor:
                members[successor] = members[successor]._replace(role=Role.ADMIN)
        case RoleChange(account, role):
            members[account] = members[account]._replace(role=role)
        case SettingsChange(settings):
            pass
    return Roster(settings, members)


def _why_not_leave(roster: RosterView, acting: Member, successor: int) -> ChangeFault | None:
    if successor:
        if acting.role is not Role.ADMIN:
            return ChangeFault.NOT_AN_ADMIN
        return None if successor != acting.account and roster.member(successor) else ChangeFault.NO_SUCH_MEMBER
    is_last_admin = acting.role is Role.ADMIN and roster.admins == 1
    return ChangeFault.LAST_ADMIN if is_last_admin and roster.size > 1 else None


def _why_not_add(roster: RosterView, acting: Member, added: tuple[NewMember, ...]) -> ChangeFault | None:
    if acting.role < roster.settings.changers:
        return ChangeFault.NOT_AN_ADMIN
    newcomers = 0
    for account, key in added:
        member = roster.member(account)
        if member is None:
            newcomers += 1
        elif member.key == key or account == acting.account:
            return ChangeFault.ALREADY_A_MEMBER
        elif acting.role is not Role.ADMIN:
            # It takes away the role that the account had under its former key.
            return ChangeFault.NOT_AN_ADMIN
    return ChangeFault.TOO_MANY_MEMBERS if roster.size + newcomers > MEMBERS_MAX else None


def _changer(before: GroupSettings, after: GroupSettings) -> Role:
    """Who may change these settings into those, at least."""
    keeps_rights = (before.writers, before.changers) == (after.writers, after.changers)
    return before.changers if keeps_rights else Role.ADMIN
