"""ML-KEM-1024: the part of a session's set-up that a quantum computer does not undo.

Spec:    FIPS 203, parameter set ML-KEM-1024; private keys are kept as their 64-byte seed (d ‖ z).
Never:   tells a wrong ciphertext from a right one: FIPS 203 §6.3 rejects implicitly, and the MAC decides.
"""

from __future__ import annotations

from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm

from .errors import BadEncoding, PrimitiveMissing

try:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM1024PrivateKey, MLKEM1024PublicKey
except ImportError as missing:
    raise PrimitiveMissing("ML-KEM-1024") from missing

SEED_BYTES = 64
PUBLIC_BYTES = 1568
CIPHERTEXT_BYTES = 1568
SECRET_BYTES = 32


class Encapsulated(NamedTuple):
    secret: bytes
    ciphertext: bytes

    def __repr__(self) -> str:
        return "<encapsulated secret>"


def public_of(seed: bytes) -> bytes:
    return _private(seed).public_key().public_bytes_raw()


def encapsulate(public: bytes) -> Encapsulated:
    try:
        key = MLKEM1024PublicKey.from_public_bytes(public)
    except ValueError as error:
        raise BadEncoding("KEM key", "it fails the check of FIPS 203") from error
    return Encapsulated(*key.encapsulate())


def decapsulate(seed: bytes, ciphertext: bytes) -> tuple[bytes, bytes]:
    """(secret, public key): expanding a seed is most of the work, and gives both."""
    if len(ciphertext) != CIPHERTEXT_BYTES:
        raise BadEncoding("KEM ciphertext", f"{len(ciphertext)} bytes")
    key = _private(seed)
    return key.decapsulate(ciphertext), key.public_key().public_bytes_raw()


def _private(seed: bytes) -> MLKEM1024PrivateKey:
    assert len(seed) == SEED_BYTES
    return MLKEM1024PrivateKey.from_seed_bytes(seed)


def _require() -> None:
    """At start-up, not at the first message: an OpenSSL without ML-KEM shows only when it is asked."""
    try:
        _private(bytes(SEED_BYTES))
    except UnsupportedAlgorithm as error:
        raise PrimitiveMissing("ML-KEM-1024") from error


_require()
