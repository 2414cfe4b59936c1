"""A browser's service: VAPID (RFC 8292) says who we are, and aes128gcm (RFC 8291) seals for the browser alone.

Knows:   the subscription that a browser gave, and our key.
Never:   opens a connection: a call to an address that somebody else has chosen goes the way of webhooks.
"""

from __future__ import annotations

import os
import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import Struct

from nightmail.model.push_rows import PushSeen

from .jwt import RenewedToken, b64url, ec_key, signed_es256
from .payload import SYNC, PushText
from .requests import PushRequest

TOKEN_S = 6 * 60 * 60
CLAIM_S = 12 * 60 * 60
"""How long a service believes a token; a day at most."""
TTL_S = 24 * 60 * 60
RECORD_BYTES = 4_096
POINT_BYTES, AUTH_BYTES, SALT_BYTES = 65, 16, 16
ORIGINS = 64
"""Services whose tokens are kept. There are a handful."""


class BadSubscription(ValueError):
    """What cannot be pushed to."""


class _Keys(Struct):
    p256dh: str
    auth: str


class Subscription(Struct):
    endpoint: str
    keys: _Keys


class WebPush:
    def __init__(self, key_pem: bytes, contact: str, entropy: Callable[[int], bytes] = os.urandom) -> None:
        """`contact`: a mailto: or https: address of the operator. Raises BadKey."""
        self._key, self._contact, self._entropy = ec_key(key_pem, "push.vapid_key_file"), contact, entropy
        self.public = b64url(_point(self._key.public_key()))
        """What a web app subscribes with."""
        self._tokens: dict[str, RenewedToken] = {}

    def request(self, seen: PushSeen, user: str, now_s: int) -> PushRequest:
        """Raises BadSubscription."""
        try:
            subscription = msgspec.json.decode(seen.token, type=Subscription)
            key, auth = _bytes(subscription.keys.p256dh), _bytes(subscription.keys.auth)
            parts = urlsplit(subscription.endpoint)
        except (msgspec.DecodeError, ValueError):
            raise BadSubscription("no subscription") from None
        if len(key) != POINT_BYTES or len(auth) != AUTH_BYTES or not parts.hostname:
            raise BadSubscription("no subscription")
        text = msgspec.json.encode(PushText(SYNC, user, seen.depth))
        token = self._token(f"{parts.scheme}://{parts.netloc}").get(now_s)
        headers = {
            "Authorization": f"vapid t={token}, k={self.public}",
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Urgency": "normal",
            "Topic": user,
        }
        return PushRequest(subscription.endpoint, headers, self._seal(text, key, auth))

    def _token(self, origin: str) -> RenewedToken:
        if origin not in self._tokens:
            if len(self._tokens) >= ORIGINS:
                self._tokens.clear()
            self._tokens[origin] = RenewedToken(
                lambda now: signed_es256(self._key, {"aud": origin, "exp": now + CLAIM_S, "sub": self._contact}),
                TOKEN_S,
            )
        return self._tokens[origin]

    def _seal(self, text: bytes, theirs: bytes, auth: bytes) -> bytes:
        try:
            public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        except ValueError:
            raise BadSubscription("no key") from None
        once = ec.generate_private_key(ec.SECP256R1())
        ours, salt = _point(once.public_key()), self._entropy(SALT_BYTES)
        shared = once.exchange(ec.ECDH(), public)
        secret = _derived(auth, shared, b"WebPush: info\0" + theirs + ours, 32)
        key = _derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(salt, secret, b"Content-Encoding: nonce\0", 12)
        header = salt + struct.pack(">IB", RECORD_BYTES, len(ours)) + ours
        return header + AESGCM(key).encrypt(nonce, text + b"\2", None)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(salt: bytes, secret: bytes, info: bytes, size: int) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(secret)


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
