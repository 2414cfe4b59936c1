"""Which devices an account has, signed by the account. The server can hand out a list, but not write one.

Spec:    Sesame §3.1 leaves device lists to the server; here the account key signs them, with a version that only
         grows.

    form u8 ‖ account u64 ‖ list version u64 ‖ account key 32 ‖ count u16 ‖ departed u16
    ‖ count × (device u64 ‖ registration u64 ‖ identity 64)                      devices ascending
    ‖ departed × (device u64 ‖ registration u64 ‖ identity 64 ‖ left at u64)     likewise
    ‖ handle length u16 ‖ handle, UTF-8                                          form 2 only
    ‖ signature 64, by the account key, over all before it

Form 1 names no handle. A list that names one is never followed by a list that names none, or another.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nightmail.model.ids import account_ids, account_of

from .curves import SIGNATURE_BYTES, sign, signing_public, verify
from .errors import (
    AccountKeyChanged,
    BadEncoding,
    HandleChanged,
    ListForked,
    ListRolledBack,
    NotListed,
    UnknownVersion,
)
from .identity import IDENTITY_BYTES, Address, PublicIdentity
from .labels import Label
from .peers import Peer

WITHOUT_HANDLE, WITH_HANDLE = 1, 2
"""The forms of a list."""
HANDLE_BYTES_MAX = 256
DEVICES_MAX = 64
DEPARTED_MAX = 64
TIME_MAX = 2**53 - 1
_HEAD = struct.Struct(">BQQ32sHH")
_ENTRY = struct.Struct(f">QQ{IDENTITY_BYTES}s")
_DEPARTED = struct.Struct(f">QQ{IDENTITY_BYTES}sQ")
_LENGTH = struct.Struct(">H")


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
    handle: str = ""
    """Whose list it is. Empty: it was signed before lists named their handle."""

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
    handle: str = "",
) -> SignedDeviceList:
    public, gone = signing_public(account_key), sorted((departed or {}).items())
    form = WITH_HANDLE if handle else WITHOUT_HANDLE
    body = _HEAD.pack(form, account, version, public, len(devices), len(gone))
    body += b"".join(_ENTRY.pack(*address, identity.encode()) for address, identity in sorted(devices.items()))
    body += b"".join(_DEPARTED.pack(*address, left.identity.encode(), left.at) for address, left in gone)
    if handle:
        name = handle.encode()
        body += _LENGTH.pack(len(name)) + name
    return check_list(body + sign(account_key, Label.DEVICE_LIST, body), account)


def check_list(signed: bytes, account: int, known: SignedDeviceList | None = None) -> SignedDeviceList:
    """A list that this account signed and that is not older than the known one; raises otherwise.

    Without a known list the key is trusted on first use; people can compare safety numbers afterwards.
    """
    found = _decode(signed)
    if found.account != account:
        raise BadEncoding("device list", "it belongs to another account")
    if found.handle and account not in account_ids(found.handle):
        raise BadEncoding("device list", "it names a handle that is not this account's")
    if known is not None and not hmac.compare_digest(found.key, known.key):
        raise AccountKeyChanged(account)
    verify(found.key, Label.DEVICE_LIST, signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:])
    if known is not None and found.version < known.version:
        raise ListRolledBack(account, known.version, found.version)
    if known is not None and found.version == known.version and not _is_same(found, known):
        raise ListForked(account, found.version)
    check_handle(found, known)
    return found


def check_handle(found: SignedDeviceList, known: SignedDeviceList | None) -> None:
    """An account keeps its handle for ever, whatever becomes of its key. Raises HandleChanged."""
    if known is not None and known.handle and found.handle != known.handle:
        raise HandleChanged(found.account, known.handle, found.handle)


def _is_same(one: SignedDeviceList, other: SignedDeviceList) -> bool:
    return one.devices == other.devices and one.departed == other.departed and one.handle == other.handle


def _decode(signed: bytes) -> SignedDeviceList:
    if len(signed) < _HEAD.size + SIGNATURE_BYTES:
        raise BadEncoding("device list", f"{len(signed)} bytes")
    form, account, version, key, count, gone = _HEAD.unpack_from(signed)
    if form not in (WITHOUT_HANDLE, WITH_HANDLE):
        raise UnknownVersion("device list", form)
    end = _HEAD.size + count * _ENTRY.size + gone * _DEPARTED.size
    if count > DEVICES_MAX or gone > DEPARTED_MAX or len(signed) < end + SIGNATURE_BYTES:
        raise BadEncoding("device list", f"{count} devices and {gone} departed in {len(signed)} bytes")
    rest = signed[end:-SIGNATURE_BYTES]
    handle = _handle(rest) if form == WITH_HANDLE else ""
    if form == WITHOUT_HANDLE and rest:
        raise BadEncoding("device list", f"{len(rest)} bytes behind the devices")
    devices = {
        address: PublicIdentity.decode(identity)
        for address, identity in _read(signed, _ENTRY, _HEAD.size, count, account)
    }
    departed: dict[Address, Departed] = {}
    for address, identity, at in _read(signed, _DEPARTED, _HEAD.size + count * _ENTRY.size, gone, account):
        if at > TIME_MAX:
            raise BadEncoding("device list", "a device left after the end of time")
        departed[address] = Departed(PublicIdentity.decode(identity), at)
    return SignedDeviceList(account, version, key, devices, signed, departed, handle)


def _handle(rest: bytes) -> str:
    """What form 2 has behind the devices."""
    size = _LENGTH.unpack_from(rest)[0] if len(rest) >= _LENGTH.size else 0
    if not 1 <= size <= HANDLE_BYTES_MAX or len(rest) != _LENGTH.size + size:
        raise BadEncoding("device list", "the handle is not as long as it says")
    try:
        handle = rest[_LENGTH.size :].decode()
    except UnicodeDecodeError:
        raise BadEncoding("device list", "the handle is not UTF-8") from None
    if not handle.isprintable():
        # It is shown to people: in a terminal, a control character could write anything.
        raise BadEncoding("device list", "the handle has characters that cannot be shown")
    return handle


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
