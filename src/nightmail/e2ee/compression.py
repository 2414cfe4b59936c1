"""Smaller before sealing, where that is safe.

Spec:    RFC 1951 (raw DEFLATE). Compressing beside a secret lets whoever chooses a part of the text measure the rest
         (CRIME); so only what one person wrote as text is compressed, never control messages or media pointers,
         which hold keys. And only if the padded size gets smaller: else the length would say something for nothing.
Never:   unpacks more than a message may hold, however small it comes.
"""

from __future__ import annotations

import zlib

from .errors import BadEncoding

LEVEL = 6
_RAW = -15
_SMALL_BYTES = 1_024
_SMALL = (-10, 3)
_LARGE = (-13, 6)
"""(window, memory). zlib's default takes 268 KiB from the system for each text, at ten times the price of packing it,
and more than a first-level cache costs the cipher that comes next."""


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
