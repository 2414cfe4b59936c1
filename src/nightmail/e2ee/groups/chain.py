"""The membership chain, verified: a server can withhold a change of a group, and never invent one.

Spec:    our own, byte by byte in docs/e2ee.md. A change is signed by the identity key of the acting device, which the
         signed list of a member's account names. `model/group_chain.py` has the bytes, `model/roster.py` the rules.
Knows:   which members this device believes in.
Never:   lets a change that is forged or not allowed touch the roster. The head passes over it all the same, because the
         next change names it; the caller tells the person.

    welcome:   version u8 ‖ group u64 ‖ genesis 32 ‖ head 32 ‖ hash of the roster 32                     105 bytes
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from nightmail.e2ee.curves import sign, verify
from nightmail.e2ee.errors import BadEncoding, BadSignature, ChainBroken, GroupRefused, UnknownVersion
from nightmail.e2ee.identity import Address, IdentityKeys
from nightmail.e2ee.labels import Label
from nightmail.e2ee.quiet import Quiet
from nightmail.model.group_chain import (
    HEAD_BYTES,
    NO_HEAD,
    SIGNATURE_BYTES,
    ChainedChange,
    decode_change,
    encode_change,
    head_of,
    is_group,
    next_roster,
)
from nightmail.model.group_chain import VERSION as CHANGE_VERSION
from nightmail.model.ids import account_of
from nightmail.model.roster import (
    ROSTER_HASH_BYTES,
    ChangeFault,
    Creation,
    GroupChange,
    Roster,
    changed,
    created,
)

VERSION = 1
_WELCOME = struct.Struct(f">BQ{HEAD_BYTES}s{HEAD_BYTES}s{ROSTER_HASH_BYTES}s")


class Signer(NamedTuple):
    """What the signed device list of an account says of one of its devices."""

    account_key: bytes
    signing: bytes


Lookup: TypeAlias = Callable[[Address], Signer | None]
"""None if the account's list does not name the device, and did not name it when the change was made. The caller gets
the account's present list first: devices that judge by different lists may believe in different members."""


class Membership(Quiet, frozen=True):
    """What one device believes about a group. Members and settings are no secret from the server."""

    group: int
    genesis: bytes
    head: bytes
    roster: Roster


class Followed(NamedTuple):
    """What became of a change."""

    membership: Membership
    change: ChainedChange
    fault: ChangeFault | None
    """Why it changed nothing; to be told to the person."""


# --- making changes ---------------------------------------------------------------------------


def sign_creation(identity: IdentityKeys, own: Address, group: int, creation: Creation) -> bytes:
    after = created(account_of(own.device), creation)
    return _signed(identity, ChainedChange(group, NO_HEAD, *own, creation, after.hash()))


def sign_change(identity: IdentityKeys, own: Address, known: Membership, change: GroupChange) -> bytes | ChangeFault:
    """The change that follows the known head, or why everybody would refuse it."""
    after = changed(known.roster, account_of(own.device), change)
    if isinstance(after, ChangeFault):
        return after
    return _signed(identity, ChainedChange(known.group, known.head, *own, change, after.hash()))


def _signed(identity: IdentityKeys, chained: ChainedChange) -> bytes:
    body = encode_change(chained)
    return body + sign(identity.signing, Label.GROUP_CHANGE, body)


# --- where a device begins --------------------------------------------------------------------


class GroupWelcome(NamedTuple):
    """Where a newcomer begins: said by the member that adds it, in their session."""

    group: int
    genesis: bytes
    head: bytes
    roster_hash: bytes

    @classmethod
    def of(cls, known: Membership) -> GroupWelcome:
        return cls(known.group, known.genesis, known.head, known.roster.hash())

    def encode(self) -> bytes:
        return _WELCOME.pack(VERSION, *self)

    @classmethod
    def decode(cls, data: bytes) -> GroupWelcome:
        if len(data) != _WELCOME.size:
            raise BadEncoding("welcome", f"{len(data)} bytes")
        version, *fields = _WELCOME.unpack(data)
        if version != VERSION:
            raise UnknownVersion("welcome", version)
        welcome = cls(*fields)
        if not is_group(welcome.group):
            raise BadEncoding("welcome", "its group has no group's number")
        return welcome


def begin(group: int, blob: bytes, lookup: Lookup) -> Membership:
    """A group from its creation. Raises if it was not created as the blob says."""
    change = _decode(blob)
    if change.group != group or not isinstance(change.change, Creation):
        raise GroupRefused(group, "this is not its creation")
    after = _verdict(None, change, blob, lookup)
    if isinstance(after, ChangeFault):
        raise GroupRefused(group, after.name.lower().replace("_", " "))
    return Membership(group, head_of(blob), head_of(blob), after)


def begin_welcomed(welcome: GroupWelcome, roster: Roster) -> Membership:
    """A group from a welcome, and the roster that the server hands out for it."""
    if not hmac.compare_digest(roster.hash(), welcome.roster_hash):
        raise GroupRefused(welcome.group, "the server's members are not those of the welcome")
    return Membership(welcome.group, welcome.genesis, welcome.head, roster)


# --- following it -----------------------------------------------------------------------------


def follow(known: Membership, blob: bytes, lookup: Lookup) -> Followed:
    """The next change of a group. Raises ChainBroken if it is not the next one; then nothing is believed or passed."""
    change = _decode(blob)
    if change.group != known.group or not hmac.compare_digest(change.previous, known.head):
        raise ChainBroken(known.group)
    after = _verdict(known.roster, change, blob, lookup)
    head = head_of(blob)
    if isinstance(after, ChangeFault):
        return Followed(Membership(known.group, known.genesis, head, known.roster), change, after)
    return Followed(Membership(known.group, known.genesis, head, after), change, None)


def _verdict(roster: Roster | None, change: ChainedChange, blob: bytes, lookup: Lookup) -> Roster | ChangeFault:
    """The roster after a change, if its signer may make it and did."""
    after = next_roster(roster, change)
    if isinstance(after, ChangeFault):
        return after
    signer = lookup(Address(change.device, change.registration))
    if signer is None:
        return ChangeFault.SIGNER_UNKNOWN
    if not hmac.compare_digest(signer.account_key, _key_of(roster or after, change.actor)):
        return ChangeFault.OTHER_ACCOUNT_KEY
    try:
        verify(signer.signing, Label.GROUP_CHANGE, blob[:-SIGNATURE_BYTES], blob[-SIGNATURE_BYTES:])
    except BadSignature:
        return ChangeFault.BAD_SIGNATURE
    return after


def _key_of(roster: Roster, account: int) -> bytes:
    return roster.members[account].key


def _decode(blob: bytes) -> ChainedChange:
    if blob and blob[0] != CHANGE_VERSION:
        raise UnknownVersion("group change", blob[0])
    try:
        return decode_change(blob)
    except ValueError as error:
        raise BadEncoding("group change", str(error)) from None
