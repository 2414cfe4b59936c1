"""X25519 and Ed25519 over raw bytes.

Spec:    RFC 7748 §5 and §6.1 (X25519, all-zero results refused); RFC 8032 §5.1 (Ed25519, S below the group order).
Never:   returns whether a signature is good: a bad one raises.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from .errors import BadEncoding, BadSignature, WeakKey
from .labels import Label

KEY_BYTES = 32
SIGNATURE_BYTES = 64


def agree(private: bytes, public: bytes) -> bytes:
    """The secret that only the two holders know. Refuses a key of low order, which would make the secret public."""
    if len(public) != KEY_BYTES:
        raise BadEncoding("X25519 key", f"{len(public)} bytes")
    try:
        # The library itself refuses an all-zero result, as RFC 7748 §6.1 allows.
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        # The library's text is not passed on: it could hold something secret.
        raise WeakKey from None


def agreement_public(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def signing_public(private: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def sign(private: bytes, label: Label, message: bytes) -> bytes:
    """Sign for one purpose. The zero byte ends the label, so no two purposes share a message."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(label.value + b"\0" + message)


def verify(public: bytes, label: Label, message: bytes, signature: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, label.value + b"\0" + message)
    except (InvalidSignature, ValueError) as error:
        raise BadSignature(label.value.decode().rpartition("/")[2]) from error
