"""Smaller before sealing, where that is safe.

Spec:    RFC 1951 (raw DEFLATE). Compressing beside a secret lets whoever chooses a part of the text measure the rest
         (CRIME); so only what one person wrote as text is compressed, never control messages or media pointers,
         which hold keys. And only if the padded size gets smaller: else the length would say something for nothing.
Never:   unpacks more than a message may hold, however small it comes.
"""

from __future__ import annotations

import zlib

from .errors import Malformed

LEVEL = 6
_RAW = -15
_SMALL_BYTES = 4_096
_SMALL = (-12, 5)
"""A window for short texts. The default asks for 268 KiB: getting it from the system costs ten times the packing."""
_LARGE = (_RAW, 8)


def deflate(data: bytes) -> bytes:
    window, memory = _SMALL if len(data) <= _SMALL_BYTES else _LARGE
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, window, memory)
    return packer.compress(data) + packer.flush()


def inflate(data: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(_RAW)
    try:
        out = unpacker.decompress(data, limit + 1)
    except zlib.error:
        raise Malformed("compressed text", "it does not unpack") from None
    if len(out) > limit or not unpacker.eof or unpacker.unused_data:
        raise Malformed("compressed text", "it is too long, cut off, or followed by something")
    return out
