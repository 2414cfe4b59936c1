"""From one secret to the next.

Spec:    RFC 5869 (HKDF-SHA256); Double Ratchet §5.2, §8.2 (KDF_RK, KDF_CK, and the 80 bytes of a message key).
Knows:   the recommended functions, with the label as an argument, so that tests can use the labels of other
         implementations.
"""

from __future__ import annotations

from hashlib import sha256

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
IV_BYTES = 16
_ZERO_SALT = bytes(32)
_SHA256 = SHA256()
_INNER_PAD = int.from_bytes(b"\x36" * 64, "big")
_OUTER_PAD = int.from_bytes(b"\x5c" * 64, "big")


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(_SHA256, length, salt, info).derive(secret)


def root_step(root: bytes, agreed: bytes, label: bytes) -> tuple[bytes, bytes]:
    """KDF_RK: (next root key, a new chain's key)."""
    out = hkdf(root, agreed, label, 2 * KEY_BYTES)
    return out[:KEY_BYTES], out[KEY_BYTES:]


def chain_step(chain: bytes) -> tuple[bytes, bytes]:
    """KDF_CK: (next chain key, one message's key), which are HMAC-SHA256(chain, 02) and HMAC-SHA256(chain, 01).

    Both HMACs have the same key, so it is combined with the two pads (RFC 2104) once. That halves the cost of a step,
    and of the steps that a forged header can cause. XOR of integers, because a table lookup by secret bytes would leave
    traces in the cache.
    """
    key = int.from_bytes(chain, "big") << 256
    inner, outer = (key ^ _INNER_PAD).to_bytes(64, "big"), (key ^ _OUTER_PAD).to_bytes(64, "big")
    return (
        sha256(outer + sha256(inner + b"\x02").digest()).digest(),
        sha256(outer + sha256(inner + b"\x01").digest()).digest(),
    )


def message_keys(key: bytes, label: bytes) -> tuple[bytes, bytes, bytes]:
    """One message's key, spread over (AES key, MAC key, IV)."""
    out = hkdf(_ZERO_SALT, key, label, 2 * KEY_BYTES + IV_BYTES)
    return out[:32], out[32:64], out[64:]
