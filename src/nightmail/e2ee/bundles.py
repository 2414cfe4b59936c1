"""What a device publishes so that others can begin a session with it.

Spec:    PQXDH §3.2 (publishing keys) and §3.3 (the prekey bundle, and checking its signatures).
Knows:   the public parts, each as bytes of fixed form: the server keeps and hands them out without reading them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .curves import KEY_BYTES, SIGNATURE_BYTES, sign, verify
from .errors import BadEncoding, UnknownVersion
from .identity import ADDRESS, VOUCHED_BYTES, Address, PublicIdentity, check_vouched
from .kem import PUBLIC_BYTES
from .labels import Label

BUNDLE_VERSION = 1
LAST_RESORT = 1
_ID = struct.Struct(">I")
SIGNED_BYTES = _ID.size + KEY_BYTES + SIGNATURE_BYTES
ONE_TIME_BYTES = _ID.size + KEY_BYTES
KEM_BYTES = 1 + _ID.size + PUBLIC_BYTES + SIGNATURE_BYTES


class SignedPrekey(NamedTuple):
    id: int
    key: bytes
    signature: bytes

    def encode(self) -> bytes:
        return _ID.pack(self.id) + self.key + self.signature

    @classmethod
    def decode(cls, data: bytes) -> SignedPrekey:
        if len(data) != SIGNED_BYTES:
            raise BadEncoding("signed prekey", f"{len(data)} bytes")
        return cls(_ID.unpack_from(data)[0], data[4:36], data[36:])


class KemPrekey(NamedTuple):
    id: int
    key: bytes
    signature: bytes
    last_resort: bool

    def encode(self) -> bytes:
        return bytes((self.last_resort,)) + _ID.pack(self.id) + self.key + self.signature

    @classmethod
    def decode(cls, data: bytes) -> KemPrekey:
        if len(data) != KEM_BYTES:
            raise BadEncoding("KEM prekey", f"{len(data)} bytes")
        if data[0] > LAST_RESORT:
            raise BadEncoding("KEM prekey", f"flags {data[0]}")
        key_end = 5 + PUBLIC_BYTES
        return cls(_ID.unpack_from(data, 1)[0], data[5:key_end], data[key_end:], bool(data[0]))

    @property
    def label(self) -> Label:
        return Label.KEM_LAST_RESORT if self.last_resort else Label.KEM_PREKEY


class OneTimePrekey(NamedTuple):
    """Not signed: a false one gains nothing, because the signed prekey goes into the secret as well."""

    id: int
    key: bytes

    def encode(self) -> bytes:
        return _ID.pack(self.id) + self.key

    @classmethod
    def decode(cls, data: bytes) -> OneTimePrekey:
        if len(data) != ONE_TIME_BYTES:
            raise BadEncoding("one-time prekey", f"{len(data)} bytes")
        return cls(_ID.unpack_from(data)[0], data[4:])


class PrekeyBundle(NamedTuple):
    """One prekey of each kind. Only `check_bundle` and `decode_bundle` make one that may be believed."""

    address: Address
    identity: PublicIdentity
    signed: SignedPrekey
    kem: KemPrekey
    one_time: OneTimePrekey | None

    @property
    def exhausted(self) -> bool:
        """No one-time key was left: the first message can be replayed to a device that forgot it."""
        return self.one_time is None or self.kem.last_resort


def signing_bytes(address: Address, key_id: int, key: bytes) -> bytes:
    """What a prekey's signature covers: also its owner and its id, so that no prekey can replace another."""
    return _ID.pack(key_id) + address.encode() + key


def sign_prekey(signing: bytes, label: Label, address: Address, key_id: int, key: bytes) -> bytes:
    return sign(signing, label, signing_bytes(address, key_id, key))


def check_bundle(
    address: Address, identity: bytes, signed: bytes, kem: bytes, one_time: bytes | None
) -> PrekeyBundle:  # fmt: skip
    """A bundle from the parts as the server hands them out; raises unless every signature verifies."""
    who = check_vouched(identity)
    prekey, kem_prekey = SignedPrekey.decode(signed), KemPrekey.decode(kem)
    body = signing_bytes(address, prekey.id, prekey.key)
    verify(who.signing, Label.SIGNED_PREKEY, body, prekey.signature)
    body = signing_bytes(address, kem_prekey.id, kem_prekey.key)
    verify(who.signing, kem_prekey.label, body, kem_prekey.signature)
    return PrekeyBundle(address, who, prekey, kem_prekey, None if one_time is None else OneTimePrekey.decode(one_time))


def encode_bundle(address: Address, identity: bytes, signed: bytes, kem: bytes, one_time: bytes | None) -> bytes:
    return bytes((BUNDLE_VERSION,)) + address.encode() + identity + signed + kem + (one_time or b"")


def decode_bundle(data: bytes) -> PrekeyBundle:
    """A bundle in one piece: version ‖ address ‖ identity ‖ signed ‖ kem [‖ one-time]. Verified, or it raises."""
    if data[:1] != bytes((BUNDLE_VERSION,)):
        raise UnknownVersion("bundle", data[0]) if data else BadEncoding("bundle", "it is empty")
    identity = 1 + ADDRESS.size
    signed = identity + VOUCHED_BYTES
    kem = signed + SIGNED_BYTES
    one_time = kem + KEM_BYTES
    if len(data) not in (one_time, one_time + ONE_TIME_BYTES):
        raise BadEncoding("bundle", f"{len(data)} bytes")
    return check_bundle(
        Address(*ADDRESS.unpack_from(data, 1)),
        data[identity:signed],
        data[signed:kem],
        data[kem:one_time],
        data[one_time:] or None,
    )
