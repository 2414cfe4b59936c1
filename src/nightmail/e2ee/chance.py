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
        """A secret for the holder of an ML-KEM key. It is here because the library draws its random bytes itself."""
        ...


class SystemChance:
    """The operating system's generator. The only one outside of tests."""

    def draw(self, count: int) -> bytes:
        return os.urandom(count)

    def encapsulate(self, public: bytes) -> kem.Encapsulated:
        return kem.encapsulate(public)


SYSTEM = SystemChance()
