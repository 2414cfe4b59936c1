"""Which devices an account has, signed by the account. The server can hand out a list, but not write one.

Spec:    Sesame §3.1 leaves device lists to the server; here the account key signs them, with a version that only
         grows.

    version u8 ‖ account u64 ‖ list version u64 ‖ account key 32 ‖ count u16 ‖ departed u16
    ‖ count × (device u64 ‖ registration u64 ‖ identity 64)                      devices ascending
    ‖ departed × (device u64 ‖ registration u64 ‖ identity 64 ‖ left at u64)     likewise
    ‖ signature 64, by the account key, over all before it
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nightmail.model.ids import account_of

from .curves import SIGNATURE_BYTES, sign, signing_public, verify
from .errors import AccountKeyChanged, BadEncoding, ListForked, ListRolledBack, NotListed, UnknownVersion
from .identity import IDENTITY_BYTES, Address, PublicIdentity
from .labels import Label
from .peers import Peer

FORM = 1
DEVICES_MAX = 64
DEPARTED_MAX = 64
TIME_MAX = 2**53 - 1
_HEAD = struct.Struct(">BQQ32sHH")
_ENTRY = struct.Struct(f">QQ{IDENTITY_BYTES}s")
_DEPARTED = struct.Struct(f">QQ{IDENTITY_BYTES}sQ")


class Departed(NamedTuple):
    """A device that left the list recently: messages that it sent before may still be under way."""

    identity: PublicIdentity
    at: int
    """When it left, in milliseconds since 1970."""


class SignedDeviceList(NamedTuple):
    account: int
    version: int
    key: bytes
    """The account's public key: what a safety number shows."""
    devices: dict[Address, PublicIdentity]
    signed: bytes
    """All of it, as it was signed: to be stored, and handed on."""
    departed: dict[Address, Departed]
    """Devices that left recently. Nothing is sealed for them."""

    def find(self, device: int) -> tuple[Address, PublicIdentity]:
        for address, identity in self.devices.items():
            if address.device == device:
                return address, identity
        raise NotListed(device, self.version)

    def peer(self, device: int) -> Peer:
        """A listed device, without a session yet."""
        return Peer.of(*self.find(device))

    def departed_peer(self, device: int) -> Peer:
        """A device that left recently, without a session yet."""
        for address, departed in self.departed.items():
            if address.device == device:
                return Peer.of(address, departed.identity)
        raise NotListed(device, self.version)

    def check_peer(self, peer: Peer) -> None:
        """Raises unless the list still names this device with this key."""
        address, identity = self.find(peer.device)
        if address != peer.address or not identity.is_same(peer.identity):
            raise NotListed(peer.device, self.version)


def sign_list(
    account_key: bytes,
    account: int,
    version: int,
    devices: Mapping[Address, PublicIdentity],
    departed: Mapping[Address, Departed] | None = None,
) -> SignedDeviceList:
    public, gone = signing_public(account_key), sorted((departed or {}).items())
    body = _HEAD.pack(FORM, account, version, public, len(devices), len(gone))
    body += b"".join(_ENTRY.pack(*address, identity.encode()) for address, identity in sorted(devices.items()))
    body += b"".join(_DEPARTED.pack(*address, left.identity.encode(), left.at) for address, left in gone)
    return check_list(body + sign(account_key, Label.DEVICE_LIST, body), account)


def check_list(signed: bytes, account: int, known: SignedDeviceList | None = None) -> SignedDeviceList:
    """A list that this account signed and that is not older than the known one; raises otherwise.

    Without a known list the key is trusted on first use; people can compare safety numbers afterwards.
    """
    found = _decode(signed)
    if found.account != account:
        raise BadEncoding("device list", "it belongs to another account")
    if known is not None and not hmac.compare_digest(found.key, known.key):
        raise AccountKeyChanged(account)
    verify(found.key, Label.DEVICE_LIST, signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:])
    if known is not None and found.version < known.version:
        raise ListRolledBack(account, known.version, found.version)
    if known is not None and found.version == known.version and not _is_same(found, known):
        raise ListForked(account, found.version)
    return found


def _is_same(one: SignedDeviceList, other: SignedDeviceList) -> bool:
    return one.devices == other.devices and one.departed == other.departed


def _decode(signed: bytes) -> SignedDeviceList:
    if len(signed) < _HEAD.size + SIGNATURE_BYTES:
        raise BadEncoding("device list", f"{len(signed)} bytes")
    form, account, version, key, count, gone = _HEAD.unpack_from(signed)
    if form != FORM:
        raise UnknownVersion("device list", form)
    length = _HEAD.size + count * _ENTRY.size + gone * _DEPARTED.size + SIGNATURE_BYTES
    if count > DEVICES_MAX or gone > DEPARTED_MAX or len(signed) != length:
        raise BadEncoding("device list", f"{count} devices and {gone} departed in {len(signed)} bytes")
    devices = {
        address: PublicIdentity.decode(identity)
        for address, identity in _read(signed, _ENTRY, _HEAD.size, count, account)
    }
    departed: dict[Address, Departed] = {}
    for address, identity, at in _read(signed, _DEPARTED, _HEAD.size + count * _ENTRY.size, gone, account):
        if at > TIME_MAX:
            raise BadEncoding("device list", "a device left after the end of time")
        departed[address] = Departed(PublicIdentity.decode(identity), at)
    return SignedDeviceList(account, version, key, devices, signed, departed)


def _read(signed: bytes, form: struct.Struct, start: int, count: int, account: int) -> Iterator[tuple[Any, ...]]:
    """(address, the fields after it), for each device."""
    last = 0
    for at in range(start, start + count * form.size, form.size):
        device, registration, *rest = form.unpack_from(signed, at)
        # One content has one encoding; and no account can list, and so impersonate, a device of another.
        if device <= last or account_of(device) != account:
            raise BadEncoding("device list", "a device is out of order, or belongs to another account")
        last = device
        yield Address(device, registration), *rest
