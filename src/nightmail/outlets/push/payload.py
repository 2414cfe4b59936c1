"""What a push says: that there is something, for whom, and how much. Nothing of what it is, or from whom.

Knows:   the secret that pseudonyms are made with.
Never:   tells a provider an account's or a device's number.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from msgspec import Struct

SYNC = "silent_sync"
PSEUDONYM_CHARS = 32


class PushText(Struct, frozen=True):
    """In the body of a push: for providers that pass on what they are given."""

    type: str
    user_id: str
    queue_depth: int


class Pseudonyms:
    """One name for each device, which only this server can tell the device of."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, device: int) -> str:
        return hmac.new(self._secret, b"push %d" % device, sha256).hexdigest()[:PSEUDONYM_CHARS]
