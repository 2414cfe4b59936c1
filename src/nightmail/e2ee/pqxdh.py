"""PQXDH: a secret between two devices, of which one may be offline.

Spec:    The PQXDH Key Agreement Protocol, revision 3, §3.3 (sending the initial message) and §3.4 (receiving it).
         KDF: HKDF-SHA256, salt 0, ikm FF×32 ‖ DH1 ‖ DH2 ‖ DH3 [‖ DH4] ‖ SS, info label ‖ transcript.
         Beyond the spec: the transcript holds everything both sides must agree on, and goes into the secret as
         well as into every message's associated data.
Never:   checks a bundle's signatures: they are checked when a `PrekeyBundle` is made.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from . import kem
from .bundles import PrekeyBundle
from .chance import Chance
from .curves import KEY_BYTES, agree, agreement_public
from .header import InitialBlock
from .identity import Address, PublicIdentity
from .kdf import hkdf
from .keys import DeviceKeys, Secrets
from .labels import Label

PROTOCOL = 1
_IDS = struct.Struct(">IIIQ")
_NO_KEY = bytes(KEY_BYTES)
_F = b"\xff" * KEY_BYTES
_ZERO_SALT = bytes(32)


class Agreed(NamedTuple):
    secret: bytes
    transcript: bytes

    def __repr__(self) -> str:
        return "<Agreed>"


class Parties(NamedTuple):
    """Who talks to whom, the initiator first."""

    initiator: Address
    initiator_identity: PublicIdentity
    responder: Address
    responder_identity: PublicIdentity


def initiate(keys: DeviceKeys, bundle: PrekeyBundle, chance: Chance, made: int) -> tuple[Agreed, InitialBlock]:
    """The secret, and what the other side needs to derive it."""
    ephemeral = chance.draw(KEY_BYTES)
    encapsulated = chance.encapsulate(bundle.kem.key)
    one_time = bundle.one_time
    block = InitialBlock(
        bundle.signed.id,
        one_time.id if one_time else 0,
        bundle.kem.id,
        made,
        keys.identity.public,
        agreement_public(ephemeral),
        encapsulated.ciphertext,
    )
    secrets = [
        agree(keys.identity.agreement, bundle.signed.key),
        agree(ephemeral, bundle.identity.agreement),
        agree(ephemeral, bundle.signed.key),
    ]
    if one_time:
        secrets.append(agree(ephemeral, one_time.key))
    secrets.append(encapsulated.secret)
    parties = Parties(keys.address, keys.identity.public, bundle.address, bundle.identity)
    transcript = transcript_of(
        parties, block, bundle.signed.key, one_time.key if one_time else _NO_KEY, bundle.kem.key
    )  # fmt: skip
    return Agreed(_derive(secrets, transcript), transcript), block


def respond(
    keys: DeviceKeys, sender: Address, identity: PublicIdentity, block: InitialBlock, secrets: Secrets
) -> Agreed:
    """The same from the other side. `identity` is the sender's as its account vouches for it."""
    agreed = [
        agree(secrets.signed, identity.agreement),
        agree(keys.identity.agreement, block.ephemeral),
        agree(secrets.signed, block.ephemeral),
    ]
    one_time_public = _NO_KEY
    if secrets.one_time is not None:
        agreed.append(agree(secrets.one_time, block.ephemeral))
        one_time_public = agreement_public(secrets.one_time)
    shared, kem_public = kem.decapsulate(secrets.kem, block.kem_ciphertext)
    agreed.append(shared)
    parties = Parties(sender, identity, keys.address, keys.identity.public)
    transcript = transcript_of(parties, block, agreement_public(secrets.signed), one_time_public, kem_public)
    return Agreed(_derive(agreed, transcript), transcript)


def transcript_of(parties: Parties, block: InitialBlock, signed: bytes, one_time: bytes, kem_public: bytes) -> bytes:
    """SHA-256 over fields of fixed length, so no two set-ups share one."""
    return hashlib.sha256(
        Label.TRANSCRIPT.value
        + bytes((0, PROTOCOL))
        + parties.initiator.encode()
        + parties.initiator_identity.encode()
        + parties.responder.encode()
        + parties.responder_identity.encode()
        + _IDS.pack(block.signed_id, block.one_time_id, block.kem_id, block.made)
        + signed
        + one_time
        + hashlib.sha256(kem_public).digest()
        + block.ephemeral
        + hashlib.sha256(block.kem_ciphertext).digest()
    ).digest()


def _derive(secrets: list[bytes], transcript: bytes) -> bytes:
    return hkdf(_ZERO_SALT, _F + b"".join(secrets), Label.PQXDH.value + transcript, 32)
