"""Between a body and what travels. The machine asks for one envelope per device, and to open what came.

A sealer that keeps state (a ratchet) writes it into the same store, inside the machine's open
transaction: so the advanced state is durable before the ciphertext leaves, and before an ack does.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

from nightmail.model.forms import TAG_BYTES
from nightmail.model.rows import Entry


class Sealer(Protocol):
    def seal(self, body: bytes, nonce: bytes, device: int, registration: int) -> bytes:
        """The ciphertext of one body for one device. `nonce` travels sealed, so that the tag can be checked."""
        ...

    def open(self, entry: Entry) -> bytes | None:
        """The body; None: this device cannot open it, or its tag does not fit."""
        ...


class Opaque:
    """Passes bytes through as they are: whoever hands them over has sealed them, or does not care."""

    def seal(self, body: bytes, nonce: bytes, device: int, registration: int) -> bytes:
        return body

    def open(self, entry: Entry) -> bytes | None:
        return entry.ciphertext


def tag_of(nonce: bytes, body: bytes, conversation: str) -> bytes:
    """Tells a retry from another content; says nothing about the content to whoever lacks the nonce."""
    return hashlib.sha256(nonce + body + conversation.encode()).digest()[:TAG_BYTES]
