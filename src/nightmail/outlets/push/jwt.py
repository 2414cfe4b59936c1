"""Tokens that prove who we are (RFC 7519): signed with ES256 or RS256, and kept until they are too old.

Touches: a private key, which it is given.
Never:   shows a key or a token in an error.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

P256_BYTES = 32


class BadKey(ValueError):
    """A file that does not hold the key that is wanted. Its text says which, and nothing of what it holds."""


def b64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def ec_key(pem: bytes, what: str) -> ec.EllipticCurvePrivateKey:
    key = _key(pem, what)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadKey(f"{what} is no private key of the curve P-256")
    return key


def rsa_key(pem: bytes, what: str) -> rsa.RSAPrivateKey:
    key = _key(pem, what)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise BadKey(f"{what} is no private RSA key")
    return key


def _key(pem: bytes, what: str) -> object:
    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise BadKey(f"{what} is no private key in PEM, or is protected by a passphrase") from None


def signed_es256(key: ec.EllipticCurvePrivateKey, claims: Mapping[str, Any], key_id: str = "") -> str:
    text = _text({"alg": "ES256", **({"kid": key_id} if key_id else {"typ": "JWT"})}, claims)
    r, s = decode_dss_signature(key.sign(text, ec.ECDSA(hashes.SHA256())))
    return f"{text.decode()}.{b64url(r.to_bytes(P256_BYTES, 'big') + s.to_bytes(P256_BYTES, 'big'))}"


def signed_rs256(key: rsa.RSAPrivateKey, claims: Mapping[str, Any]) -> str:
    text = _text({"alg": "RS256", "typ": "JWT"}, claims)
    return f"{text.decode()}.{b64url(key.sign(text, padding.PKCS1v15(), hashes.SHA256()))}"


def _text(header: Mapping[str, Any], claims: Mapping[str, Any]) -> bytes:
    return ".".join(b64url(msgspec.json.encode(part)) for part in (header, claims)).encode()


class RenewedToken:
    """A text that is made again when it is older than it may be, or was refused."""

    def __init__(self, make: Callable[[int], str], life_s: int) -> None:
        self._make, self._life_s = make, life_s
        self._text, self._made = "", 0

    def get(self, now_s: int) -> str:
        if not self._text or not self._made <= now_s < self._made + self._life_s:
            self._text, self._made = self._make(now_s), now_s
        return self._text

    def refused(self, now_s: int, least_s: int) -> None:
        """Make another one, unless this one is younger than `least_s`: then it is not its age."""
        if now_s - self._made >= least_s:
            self._text = ""
