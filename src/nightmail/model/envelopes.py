"""An envelope: records carry it, and rows keep it while its time has not come."""

from __future__ import annotations

from msgspec import Struct


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """One device's ciphertext. `registration` tells a device from its reset successor."""

    device: int
    registration: int
    ciphertext: bytes
