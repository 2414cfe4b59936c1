"""A sealed stream on its way in: every chunk is verified before anything of it is handed out.

Knows:   from the message how long the stream is and which digest it has, so a chunk's place is never guessed.
Never:   holds more than a block and a chunk.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from hashlib import sha256

from nightmail.client.media_errors import ChunkRefused, DigestDiffers, OtherBlob
from nightmail.e2ee.errors import OtherKey, Rejected, StreamBroken
from nightmail.e2ee.streams.media import MediaPointer
from nightmail.e2ee.streams.stream import CHUNK_BYTES, HEAD_BYTES, SEALED_CHUNK_BYTES, StreamCipher


class StreamCheck:
    """Takes a stream in blocks, and hands out each chunk once it has verified; the last one once all of it has."""

    def __init__(self, pointer: MediaPointer) -> None:
        self._pointer, self._cipher = pointer, StreamCipher(pointer.key)
        self._digest = sha256()
        self._held = b""
        self._next = 0
        self.came = 0
        """Bytes that were taken."""
        self.verified = 0
        """Bytes of the stream, from its beginning, that have verified."""

    def take_again(self, content: bytes) -> None:
        """A whole chunk of content that has verified before, and is not the last: its seal follows from it. That it is
        still the same shows at the end of the stream."""
        if not self.verified:
            self._head(self._cipher.head)
        self._count(self._cipher.seal(self._next, content, is_last=False))
        self.came = self.verified

    def take(self, block: bytes) -> Iterator[tuple[memoryview, bytes]]:
        """Sealed parts of the stream with their content. Raises FileRefused; the object is of no use then."""
        held = self._held = self._held + block
        self.came += len(block)
        size, at = self._pointer.sealed_bytes, 0
        view = memoryview(held)
        if self.came > size:
            raise OtherBlob("it is longer than it should be")
        if not self.verified:
            if len(held) < HEAD_BYTES:
                return
            at = HEAD_BYTES
            self._head(held[:at])
            yield view[:at], b""
        while (length := min(SEALED_CHUNK_BYTES, size - self.verified)) and len(held) - at >= length:
            sealed = view[at : at + length]
            at += length
            yield sealed, self._chunk(sealed, is_last=self.verified + length == size)
        self._held = held[at:]

    def drop_rest(self) -> None:
        """Forget what came behind the last chunk that has verified."""
        self._held = b""
        self.came = self.verified

    def _head(self, head: bytes) -> None:
        try:
            self._cipher.check_head(head)
        except (OtherKey, Rejected):
            raise OtherBlob("its key is another one") from None
        self._digest.update(head)
        self.verified = HEAD_BYTES

    def _chunk(self, sealed: memoryview, *, is_last: bool) -> bytes:
        index = self._next
        try:
            opened = self._cipher.open(index, sealed, is_last=is_last)
        except StreamBroken:
            raise ChunkRefused(index) from None
        self._count(sealed)
        if is_last and not secrets.compare_digest(self._digest.digest(), self._pointer.digest):
            raise DigestDiffers
        content = max(0, min(len(opened), self._pointer.size - index * CHUNK_BYTES))
        mark = b"\x80" if 0 <= self._pointer.size - index * CHUNK_BYTES < len(opened) else b""
        if opened[content:] != mark.ljust(len(opened) - content, b"\0"):
            raise ChunkRefused(index)
        return opened[:content]

    def _count(self, sealed: bytes | memoryview) -> None:
        self._digest.update(sha256(sealed).digest())
        self._next += 1
        self.verified += len(sealed)
