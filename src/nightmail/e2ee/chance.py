"""Where randomness comes from: an argument, never a hidden call.

Spec:    RFC 7748 §6.1 and RFC 8032 §5.1.5 (32 random bytes are a key); FIPS 203 §7 (seeds of ML-KEM).
Knows:   the operating system's generator. Tests and vectors hand in their own.
"""

from __future__ import annotations

import os
from typing import Protocol

from . import kem


class Chance(Protocol):
    def draw(self, count: int) -> bytes:
        """Bytes that nobody can guess."""
        ...

    def encapsulate(self, public: bytes) -> kem.Encapsulated:
        """A secret for the holder of an ML-KEM key. Here, because the library draws for itself."""
        ...


class SystemChance:
    """The operating system's. The only one for use."""

    def draw(self, count: int) -> bytes:
        return os.urandom(count)

    def encapsulate(self, public: bytes) -> kem.Encapsulated:
        return kem.encapsulate(public)


SYSTEM = SystemChance()
