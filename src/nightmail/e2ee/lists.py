"""Which devices an account has, in the account's own words. The server can hand out a list, but not write one.

Spec:    Sesame §3.1 leaves device lists to the server; here the account key signs them, with a version that only
         grows (F4 of the requirements).

    version u8 ‖ account u64 ‖ list version u64 ‖ account key 32 ‖ count u16
    ‖ count × (device u64 ‖ registration u64 ‖ identity 64)        devices ascending
    ‖ signature 64, by the account key, over all before it
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple

from nightmail.model.ids import account_of

from .curves import SIGNATURE_BYTES, sign, signing_public, verify
from .errors import AccountKeyChanged, ListForked, ListRolledBack, Malformed, NotListed, UnknownVersion
from .identity import IDENTITY_BYTES, Address, Identity
from .labels import Label
from .peers import Peer

FORM = 1
DEVICES_MAX = 64
_HEAD = struct.Struct(">BQQ32sH")
_ENTRY = struct.Struct(f">QQ{IDENTITY_BYTES}s")


class DeviceList(NamedTuple):
    account: int
    version: int
    key: bytes
    """The account's public key: what a safety number shows."""
    devices: dict[Address, Identity]
    signed: bytes
    """All of it, as it was signed: to be stored, and handed on."""

    def find(self, device: int) -> tuple[Address, Identity]:
        for address, identity in self.devices.items():
            if address.device == device:
                return address, identity
        raise NotListed(device, self.version)

    def peer(self, device: int) -> Peer:
        """A listed device, without a session yet."""
        return Peer.of(*self.find(device))

    def check_peer(self, peer: Peer) -> None:
        """Raises unless the list still names this very device with this very key."""
        address, identity = self.find(peer.device)
        if address != peer.address or not identity.is_same(peer.identity):
            raise NotListed(peer.device, self.version)


def sign_list(account_key: bytes, account: int, version: int, devices: dict[Address, Identity]) -> DeviceList:
    public = signing_public(account_key)
    body = _HEAD.pack(FORM, account, version, public, len(devices)) + b"".join(
        _ENTRY.pack(*address, identity.encode()) for address, identity in sorted(devices.items())
    )
    return check_list(body + sign(account_key, Label.DEVICE_LIST, body), account)


def check_list(signed: bytes, account: int, known: DeviceList | None = None) -> DeviceList:
    """A list that this account signed and that does not go back behind the one we know; raises otherwise.

    Without a known list the key is taken on trust, once; comparing safety numbers makes good for it.
    """
    found = _decode(signed)
    if found.account != account:
        raise Malformed("device list", "it is another account's")
    if known is not None and not hmac.compare_digest(found.key, known.key):
        raise AccountKeyChanged(account)
    verify(found.key, Label.DEVICE_LIST, signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:])
    if known is not None and found.version < known.version:
        raise ListRolledBack(account, known.version, found.version)
    if known is not None and found.version == known.version and found.devices != known.devices:
        raise ListForked(account, found.version)
    return found


def _decode(signed: bytes) -> DeviceList:
    if len(signed) < _HEAD.size + SIGNATURE_BYTES:
        raise Malformed("device list", f"{len(signed)} bytes")
    form, account, version, key, count = _HEAD.unpack_from(signed)
    if form != FORM:
        raise UnknownVersion("device list", form)
    if count > DEVICES_MAX or len(signed) != _HEAD.size + count * _ENTRY.size + SIGNATURE_BYTES:
        raise Malformed("device list", f"{count} devices in {len(signed)} bytes")
    devices: dict[Address, Identity] = {}
    last = 0
    for at in range(_HEAD.size, _HEAD.size + count * _ENTRY.size, _ENTRY.size):
        device, registration, identity = _ENTRY.unpack_from(signed, at)
        # One form for one content; and no account can list, and so impersonate, another's device.
        if device <= last or account_of(device) != account:
            raise Malformed("device list", "a device is out of order, or another account's")
        last = device
        devices[Address(device, registration)] = Identity.decode(identity)
    return DeviceList(account, version, key, devices, signed)
