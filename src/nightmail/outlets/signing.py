"""Signatures by the Standard Webhooks scheme (standardwebhooks.com).

    webhook-id: …   webhook-timestamp: 1700000000   webhook-signature: v1,<base64 HMAC-SHA256>

The signature covers id, time and body. A repeat has the same id, so that a receiver can tell it from another call.
"""

from __future__ import annotations

import base64
import binascii
import hmac

SECRET_PREFIX = "whsec_"  # noqa: S105 (what every such secret begins with)
SECRET_BYTES = (24, 64)


def secret_bytes(text: str) -> bytes:
    """The secret from a setting: base64, usually behind `whsec_`. Raises ValueError."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    low, high = SECRET_BYTES
    if not low <= len(secret) <= high:
        raise ValueError(f"not of {low} to {high} bytes")
    return secret


def secret_text(secret: bytes) -> str:
    """The secret as a receiver's library wants it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def account_secret(pepper: bytes, account: int) -> bytes:
    """The secret of one account's calls. A receiver that knows it can sign for this account only."""
    return hmac.digest(pepper, f"webhooks of {account:x}".encode(), "sha256")


def signed(secret: bytes, ident: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers that prove who calls, and when."""
    text = f"{ident}.{at_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, text, "sha256")).decode()
    return {"webhook-id": ident, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{signature}"}
