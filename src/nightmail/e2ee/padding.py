"""Padding: the size of a sealed message is one of a few, whatever its length.

Spec:    ISO/IEC 7816-4 padding (80, then zeros), into buckets that waste at most a quarter from 512 bytes on. As in
         PADMÉ, sizes have two significant bits after the leading one.
Knows:   that the cipher adds one byte to a full bucket: buckets are whole AES blocks on the wire.
"""

from __future__ import annotations

from .errors import BadEncoding

BUCKET_MIN = 128
STEP_MIN = 64


def bucket(length: int) -> int:
    """The size on the wire, cipher's padding included, of `length` bytes and the mark that ends them."""
    needed = length + 2
    if needed <= BUCKET_MIN:
        return BUCKET_MIN
    step = max(STEP_MIN, 1 << (needed - 1).bit_length() - 3)
    return -(-needed // step) * step


def pad(data: bytes) -> bytes:
    return (data + b"\x80").ljust(bucket(len(data)) - 1, b"\0")


def unpad(padded: bytes) -> bytes:
    """Call it only after the MAC has verified: then its failure tells an attacker nothing. Any size is accepted."""
    data = padded.rstrip(b"\0")
    if data[-1:] != b"\x80":
        raise BadEncoding("padding", "its end is not marked")
    return data[:-1]
