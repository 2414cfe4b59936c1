"""From one secret to the next.

Spec:    RFC 5869 (HKDF-SHA256); Double Ratchet §5.2, §8.2 (KDF_RK, KDF_CK, and the 80 bytes of a message key).
Knows:   the recommended functions, with the label as an argument: so other labels can be held against other
         implementations.
"""

from __future__ import annotations

import hmac

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
IV_BYTES = 16
_ZERO_SALT = bytes(32)
_SHA256 = SHA256()


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(_SHA256, length, salt, info).derive(secret)


def root_step(root: bytes, agreed: bytes, label: bytes) -> tuple[bytes, bytes]:
    """KDF_RK: (next root key, a new chain's key)."""
    out = hkdf(root, agreed, label, 2 * KEY_BYTES)
    return out[:KEY_BYTES], out[KEY_BYTES:]


def chain_step(chain: bytes) -> tuple[bytes, bytes]:
    """KDF_CK: (next chain key, one message's key)."""
    return hmac.digest(chain, b"\x02", "sha256"), hmac.digest(chain, b"\x01", "sha256")


def message_keys(key: bytes, label: bytes) -> tuple[bytes, bytes, bytes]:
    """One message's key, spread over (AES key, MAC key, IV)."""
    out = hkdf(_ZERO_SALT, key, label, 2 * KEY_BYTES + IV_BYTES)
    return out[:32], out[32:64], out[64:]
