"""The shared vectors of sealed streams. Long ones stand in the file by their digests."""

from __future__ import annotations

import hashlib

from nightmail.e2ee.stream import CHUNK_BYTES, StreamSealer
from nightmail.e2ee.stream_padding import padded_size

from .vector_ends import Made

SIZES = (0, 1, 1_022, 1_023, 1_024, 1_500, 65_534, 65_535, 65_536, 100_000, 10_000_000, 1 << 30, 1 << 40)
SHORT = 100


def make_streams() -> Made:
    contents = {
        "empty": b"",
        "a few words": b"hello, stream",
        "ends in what looks like padding": b"text\x80\0\0",
        "one chunk with its mark": _drawn("one chunk", CHUNK_BYTES - 1),
        "the mark stands in a chunk of its own": _drawn("two chunks", CHUNK_BYTES),
        "padding over several chunks": bytes(3_000_000),
    }
    return {
        "padded_sizes": [[str(size), str(padded_size(size))] for size in SIZES],
        "streams": [_stream(why, content) for why, content in contents.items()],
    }


def _stream(why: str, content: bytes) -> Made:
    sealer = StreamSealer(key := _drawn(f"key of {why}", 32))
    chunks = list(sealer.chunks([content]))
    is_short = len(content) <= SHORT
    return {
        "why": why, "key": key.hex(), "content_bytes": len(content),
        "content": content.hex() if is_short else None, "content_sha256": hashlib.sha256(content).hexdigest(),
        "head": sealer.head.hex(), "chunks": [chunk.data.hex() for chunk in chunks] if is_short else None,
        "chunk_sizes": [len(chunk.data) for chunk in chunks], "chunk_digests": [chunk.digest.hex() for chunk in chunks],
        "digest": sealer.digest.hex(),
    }  # fmt: skip


def _drawn(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)
