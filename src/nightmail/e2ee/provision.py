"""How a new device learns its account's key from the device that vouches for it.

Spec:    our own, byte by byte in docs/e2ee.md. The person carried the secret to the primary device in a code, so the
         server never had it: an HMAC-SHA256 (RFC 2104) under it proves the author.

    MAC 32 ‖ account key 32 [‖ the account's signing key 32, when the account moves to the new device]

Never:   believes an account key that does not come under the secret's MAC, for this device.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from .curves import KEY_BYTES, signing_public
from .errors import BadEncoding, NotAsAnnounced
from .identity import Address
from .labels import Label

SECRET_BYTES = 16
MAC_BYTES = 32


class Provision(NamedTuple):
    key: bytes
    """The account's public key."""
    signing: bytes = b""
    """Its private half: the new device is the primary one from now on."""

    def __repr__(self) -> str:
        return "<Provision>"


def make_provision(secret: bytes, address: Address, signing: bytes, *, hand_over: bool = False) -> bytes:
    """For the device with this address, under the secret of its code. `signing` is the account's signing key."""
    body = signing_public(signing) + (signing if hand_over else b"")
    return _mac(secret, address, body) + body


def check_provision(secret: bytes, address: Address, data: bytes) -> Provision:
    if len(data) not in (MAC_BYTES + KEY_BYTES, MAC_BYTES + 2 * KEY_BYTES):
        raise BadEncoding("provision", f"{len(data)} bytes")
    mac, body = data[:MAC_BYTES], data[MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(secret, address, body)):
        raise NotAsAnnounced("account key")
    key, signing = body[:KEY_BYTES], body[KEY_BYTES:]
    if signing and signing_public(signing) != key:
        raise NotAsAnnounced("account key")
    return Provision(key, signing)


def _mac(secret: bytes, address: Address, body: bytes) -> bytes:
    assert len(secret) == SECRET_BYTES
    return hmac.digest(secret, Label.PROVISION.value + b"\0" + address.encode() + body, hashlib.sha256)
