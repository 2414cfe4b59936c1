"""Who a device is: an Ed25519 key that signs and an X25519 key that agrees, the second vouched for by the first.

Spec:    PQXDH §2.4 (identity keys). Two keys instead of one key in two forms (XEdDSA): each primitive is used
         as its own standard defines it, and both sides find it in mainstream libraries.
Knows:   keys and addresses. Which device belongs to an account, `lists.py` knows.
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple

from .chance import Chance
from .curves import KEY_BYTES, SIGNATURE_BYTES, agreement_public, sign, signing_public, verify
from .errors import BadEncoding
from .labels import Label
from .quiet import Quiet

ADDRESS = struct.Struct(">QQ")
IDENTITY_BYTES = 2 * KEY_BYTES
VOUCHED_BYTES = IDENTITY_BYTES + SIGNATURE_BYTES


class Address(NamedTuple):
    """A device and its registration: a device that is reset keeps its number, and registers again."""

    device: int
    registration: int

    def encode(self) -> bytes:
        return ADDRESS.pack(self.device, self.registration)


class PublicIdentity(NamedTuple):
    """The public halves of a device's two keys."""

    signing: bytes
    agreement: bytes

    def encode(self) -> bytes:
        return self.signing + self.agreement

    @classmethod
    def decode(cls, data: bytes) -> PublicIdentity:
        if len(data) != IDENTITY_BYTES:
            raise BadEncoding("identity", f"{len(data)} bytes")
        return cls(data[:KEY_BYTES], data[KEY_BYTES:])

    def is_same(self, other: PublicIdentity) -> bool:
        return hmac.compare_digest(self.encode(), other.encode())


class IdentityKeys(Quiet, frozen=True):
    """The private halves, and the public ones, which would cost a multiplication each to derive."""

    signing: bytes
    agreement: bytes
    signing_public: bytes
    agreement_public: bytes

    @classmethod
    def make(cls, chance: Chance) -> IdentityKeys:
        signing, agreement = chance.draw(KEY_BYTES), chance.draw(KEY_BYTES)
        return cls(signing, agreement, signing_public(signing), agreement_public(agreement))

    @property
    def public(self) -> PublicIdentity:
        return PublicIdentity(self.signing_public, self.agreement_public)

    def vouched(self) -> bytes:
        """The public identity with the signature that ties its keys together: what is published."""
        return self.public.encode() + sign(self.signing, Label.IDENTITY, self.agreement_public)


def check_vouched(data: bytes) -> PublicIdentity:
    """The identity in published bytes; raises unless its keys belong together."""
    if len(data) != VOUCHED_BYTES:
        raise BadEncoding("published identity", f"{len(data)} bytes")
    identity = PublicIdentity.decode(data[:IDENTITY_BYTES])
    verify(identity.signing, Label.IDENTITY, identity.agreement, data[IDENTITY_BYTES:])
    return identity
