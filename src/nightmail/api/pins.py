"""What the server stores of a registration lock's PIN.

    client   token  = Argon2id(PIN, salt from the account)        nightmail.client.pin
    here     digest = Argon2id(token, random salt, pepper)

Knows:   the pepper. It is in no row and no log, so a copy of those does not allow to try PINs.
Never:   keeps a token, or blocks the event loop: Argon2 runs on a thread, one at a time.
"""

from __future__ import annotations

import asyncio
import hmac
import os

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from nightmail.model.forms import PIN_BYTES, PIN_SALT_BYTES

from .problems import problem

LABEL = b"nightmail/v1/pin-pepper"

MEMORY_KIB = 19 * 1024
ITERATIONS = 2
"""OWASP's minimum. The client has spent more before, and the pepper protects both. Measured: 50 ms."""

WAITING = 16
"""Under a second of work; further requests are refused."""


class Pins:
    def __init__(self, secret: bytes) -> None:
        self._pepper = hmac.digest(secret, LABEL, "sha256")
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def new(self, token: bytes) -> tuple[bytes, bytes]:
        """A salt and a digest, for a lock."""
        salt = os.urandom(PIN_SALT_BYTES)
        return salt, await self.digest(token, salt)

    async def digest(self, token: bytes, salt: bytes) -> bytes:
        if self._waiting >= WAITING:
            raise problem("not_ready", "too many PINs are being looked at", retry_s=1)
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._derive, token, salt)
        finally:
            self._waiting -= 1

    def _derive(self, token: bytes, salt: bytes) -> bytes:
        return Argon2id(
            salt=salt, length=PIN_BYTES, iterations=ITERATIONS, lanes=1, memory_cost=MEMORY_KIB, secret=self._pepper
        ).derive(token)
