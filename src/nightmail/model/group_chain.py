"""The membership chain of a group as bytes: each change names the hash of the one before it.

    version u8 ‖ group u64 ‖ previous 32 ‖ device u64 ‖ registration u64 ‖ kind u8 ‖ change
    ‖ hash of the roster after it 32 ‖ signature 64

    1 creation     settings 7 ‖ count u16 ‖ count × (account u64 ‖ account key 32)
    2 addition     count u16 ‖ count × (account u64 ‖ account key 32)
    3 removal      count u16 ‖ count × account u64
    4 departure    successor u64 (0: none)
    5 role         account u64 ‖ role u8
    6 settings     settings 7

Knows:   the form and its bounds, and the hash. The server reads the change from the bytes that clients verify, so both
         see the same one.
Never:   checks the signature, or whether the change is allowed (`roster.py`).
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from .forms import DEVICE_MAX
from .ids import ACCOUNT_BITS, account_of, index_of
from .roster import (
    ACCOUNT_KEY_BYTES,
    ROSTER_HASH_BYTES,
    SETTINGS_BYTES,
    Addition,
    ChangeFault,
    Creation,
    Departure,
    GroupChange,
    GroupSettings,
    NewMember,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
    changed,
    created,
)

VERSION = 1
NAMED_MAX = 256
"""Accounts in one change."""
HEAD_BYTES = 32
NO_HEAD = bytes(HEAD_BYTES)
"""What the first change of a group follows."""
SIGNATURE_BYTES = 64
HEAD_LABEL = b"nightmail/v1/group-head"

_FRONT = struct.Struct(f">BQ{HEAD_BYTES}sQQB")
_MEMBER = struct.Struct(f">Q{ACCOUNT_KEY_BYTES}s")
_ACCOUNT = struct.Struct(">Q")
_ROLE = struct.Struct(">QB")
_COUNT = struct.Struct(">H")
CHANGE_BYTES_MAX = (
    _FRONT.size + SETTINGS_BYTES + _COUNT.size + NAMED_MAX * _MEMBER.size + ROSTER_HASH_BYTES + SIGNATURE_BYTES
)


class ChangeKind(IntEnum):
    CREATION = 1
    ADDITION = 2
    REMOVAL = 3
    DEPARTURE = 4
    ROLE = 5
    SETTINGS = 6


class ChainedChange(NamedTuple):
    """One change of a group, as the acting device signs it."""

    group: int
    previous: bytes
    """The head that it follows."""
    device: int
    registration: int
    change: GroupChange
    roster_hash: bytes
    """Of the roster after it."""

    @property
    def actor(self) -> int:
        return account_of(self.device)


def is_group(number: int) -> bool:
    """Groups have the even numbers among those of accounts."""
    return 0 < number < 1 << ACCOUNT_BITS and number % 2 == 0


def head_of(blob: bytes) -> bytes:
    """The head after a change. The signature is part of it: one head means one verdict on every change before it."""
    return hashlib.sha256(HEAD_LABEL + b"\0" + blob).digest()


def next_roster(roster: Roster | None, change: ChainedChange) -> Roster | ChangeFault:
    """The roster after a change, which is the one that its author signed, or why the change is refused."""
    if isinstance(change.change, Creation) and roster is None:
        after: Roster | ChangeFault = created(change.actor, change.change)
    elif roster is None:
        return ChangeFault.NOT_A_MEMBER
    else:
        after = changed(roster, change.actor, change.change)
    if isinstance(after, Roster) and after.hash() != change.roster_hash:
        return ChangeFault.ROSTER_DIFFERS
    return after


# --- bytes ------------------------------------------------------------------------------------


def encode_change(chained: ChainedChange) -> bytes:
    """What is signed. The signature follows it."""
    kind, body = _encode_body(chained.change)
    front = _FRONT.pack(VERSION, chained.group, chained.previous, chained.device, chained.registration, kind)
    return front + body + chained.roster_hash


def decode_change(blob: bytes) -> ChainedChange:
    """A change with its signature behind it. Raises ValueError, with one sentence."""
    end = len(blob) - ROSTER_HASH_BYTES - SIGNATURE_BYTES
    if end < _FRONT.size or len(blob) > CHANGE_BYTES_MAX:
        raise ValueError(f"{len(blob)} bytes")
    version, group, previous, device, registration, kind = _FRONT.unpack_from(blob)
    if version != VERSION:
        raise ValueError(f"version {version} is not known here")
    if not is_group(group):
        raise ValueError("its group has no group's number")
    if device > DEVICE_MAX or not index_of(device):
        raise ValueError("its device has no device's number")
    if (kind == ChangeKind.CREATION) is not (previous == NO_HEAD):
        raise ValueError("a creation follows nothing, and every other change follows one")
    actor = _account(account_of(device))
    try:
        change = _decode_body(kind, blob[_FRONT.size : end])
    except struct.error:
        raise ValueError("its length is not that of its kind") from None
    if isinstance(change, Creation) and all(member.account != actor for member in change.members):
        raise ValueError("a creation names its creator among the members")
    return ChainedChange(group, previous, device, registration, change, blob[end : end + ROSTER_HASH_BYTES])


def _encode_body(change: GroupChange) -> tuple[ChangeKind, bytes]:
    match change:
        case Creation(settings, members):
            return ChangeKind.CREATION, settings.encode() + _pack_members(members)
        case Addition(members):
            return ChangeKind.ADDITION, _pack_members(members)
        case Removal(accounts):
            return ChangeKind.REMOVAL, _COUNT.pack(len(accounts)) + b"".join(map(_ACCOUNT.pack, accounts))
        case Departure(successor):
            return ChangeKind.DEPARTURE, _ACCOUNT.pack(successor)
        case RoleChange(account, role):
            return ChangeKind.ROLE, _ROLE.pack(account, role)
        case SettingsChange(settings):
            return ChangeKind.SETTINGS, settings.encode()


def _decode_body(kind: int, body: bytes) -> GroupChange:
    """Raises struct.error if the length is not that of the kind."""
    match ChangeKind(kind):
        case ChangeKind.CREATION:
            return Creation(GroupSettings.decode(body[:SETTINGS_BYTES]), _unpack_members(body[SETTINGS_BYTES:]))
        case ChangeKind.ADDITION:
            return Addition(_unpack_members(body))
        case ChangeKind.REMOVAL:
            return Removal(tuple(account for (account,) in _unpack(body, _ACCOUNT)))
        case ChangeKind.DEPARTURE:
            (successor,) = _ACCOUNT.unpack(body)
            return Departure(_account(successor) if successor else 0)
        case ChangeKind.ROLE:
            account, role = _ROLE.unpack(body)
            return RoleChange(_account(account), Role(role))
        case ChangeKind.SETTINGS:
            return SettingsChange(GroupSettings.decode(body))


def _pack_members(members: tuple[NewMember, ...]) -> bytes:
    return _COUNT.pack(len(members)) + b"".join(_MEMBER.pack(*member) for member in members)


def _unpack_members(body: bytes) -> tuple[NewMember, ...]:
    return tuple(NewMember(account, key) for account, key in _unpack(body, _MEMBER))


def _unpack(body: bytes, form: struct.Struct) -> list[tuple[Any, ...]]:
    (count,) = _COUNT.unpack_from(body)
    if not 1 <= count <= NAMED_MAX:
        raise ValueError(f"a change names 1 to {NAMED_MAX} accounts")
    if len(body) != _COUNT.size + count * form.size:
        raise struct.error
    found = list(form.iter_unpack(body[_COUNT.size :]))
    last = 0
    for account, *_ in found:
        # One change has one encoding, and names nobody twice.
        if _account(account) <= last:
            raise ValueError("an account is named twice, or out of order")
        last = account
    return found


def _account(number: int) -> int:
    if number >= 1 << ACCOUNT_BITS or number % 2 == 0:
        raise ValueError("an account has no account's number")
    return number
