"""Smaller before sealing, where that is safe.

Spec:    RFC 1951 (raw DEFLATE). If a secret is compressed together with a text that an attacker chooses, the length
         tells about the secret (CRIME). So only text that one person wrote is compressed, never control messages or
         media pointers, which hold keys; and only if the padded size gets smaller.
Never:   unpacks more than a message may hold.
"""

from __future__ import annotations

import zlib

from .errors import BadEncoding

LEVEL = 6
_RAW = -15
_SMALL_BYTES = 1_024
_SMALL = (-10, 3)
_LARGE = (-13, 6)
"""(window, memory). zlib's default allocates 268 KiB for each text. That costs ten times as much as compressing it, and
evicts the first-level cache before the cipher runs."""


def deflate(data: bytes) -> bytes:
    window, memory = _SMALL if len(data) <= _SMALL_BYTES else _LARGE
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, window, memory)
    return packer.compress(data) + packer.flush()


def inflate(data: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(_RAW)
    try:
        out = unpacker.decompress(data, limit + 1)
    except zlib.error:
        raise BadEncoding("compressed text", "it does not unpack") from None
    if len(out) > limit or not unpacker.eof or unpacker.unused_data:
        raise BadEncoding("compressed text", "it is too long, cut off, or followed by something")
    return out
