"""The token that a server gets instead of a PIN.

    pin_token = Argon2id(PIN, salt = SHA-256(label ‖ 0 ‖ account)[:16]), 64 MiB, 3 passes, 1 lane, 32 bytes

Knows:   no secret. The salt follows from the account, so a new device can make the same token before it knows anything.
Never:   keeps or shows a PIN.

The parameters cost a quarter of a second, once in a phone's life. They only slow down a server that tries PINs
itself; against everybody else the server counts wrong PINs, and adds a pepper.
"""

from __future__ import annotations

import hashlib
import unicodedata

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from nightmail.client.errors import Misused
from nightmail.e2ee.labels import Label

MEMORY_KIB = 64 * 1024
ITERATIONS = 3
SALT_BYTES = 16
TOKEN_BYTES = 32
PIN_CHARS = (4, 64)


def pin_token(account: int, pin: str) -> bytes:
    """Takes a while: call it on a thread if an event loop runs. Raises Misused if the PIN is too short or too long."""
    pin = unicodedata.normalize("NFKC", pin).strip()
    low, high = PIN_CHARS
    if not low <= len(pin) <= high:
        raise Misused(f"a PIN has {low} to {high} characters")
    salt = hashlib.sha256(Label.PIN.value + b"\0" + account.to_bytes(8, "big")).digest()[:SALT_BYTES]
    return Argon2id(salt=salt, length=TOKEN_BYTES, iterations=ITERATIONS, lanes=1, memory_cost=MEMORY_KIB).derive(
        pin.encode()
    )
