"""The number that two people compare to know that nobody intercepts their messages.

Spec:    Signal's numeric fingerprint (iterated SHA-512, 5,200 rounds, 30 digits a side), over account keys and under
         our own label instead of its version number.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

from .errors import NotAsAnnounced
from .labels import Label

ROUNDS = 5_200
_CHUNKS = 6
_CHUNK_BYTES = 5
_ACCOUNT = struct.Struct(">Q")


def safety_number(account: int, key: bytes, other_account: int, other_key: bytes) -> str:
    """60 digits, the same from both sides."""
    prefix = Label.SAFETY_NUMBER.value + b"\0"
    return joined(
        fingerprint(prefix, key, _ACCOUNT.pack(account)),
        fingerprint(prefix, other_key, _ACCOUNT.pack(other_account)),
    )


def check_safety_number(ours: str, theirs: str) -> None:
    """Compare with what was read out or scanned; spaces do not matter. Raises if they differ."""
    digits = "".join(theirs.split())
    if not hmac.compare_digest(ours.encode(), digits.encode()):
        raise NotAsAnnounced("safety number")


def grouped(number: str) -> str:
    """As it is shown: twelve groups of five."""
    return " ".join(number[at : at + 5] for at in range(0, len(number), 5))


def fingerprint(prefix: bytes, key: bytes, identifier: bytes) -> str:
    """One side's 30 digits. The rounds make it expensive to search for another key with the same digits."""
    digest = prefix + key + identifier
    for _ in range(ROUNDS):
        digest = hashlib.sha512(digest + key).digest()
    return "".join(
        f"{int.from_bytes(digest[at : at + _CHUNK_BYTES], 'big') % 100_000:05d}"
        for at in range(0, _CHUNKS * _CHUNK_BYTES, _CHUNK_BYTES)
    )


def joined(one: str, other: str) -> str:
    return "".join(sorted((one, other)))
