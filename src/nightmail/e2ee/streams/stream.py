"""Content of any size under one key: chunks that are sealed, opened and verified one by one.

Spec:    STREAM (Hoang, Reyhanitabar, Rogaway, Vizár 2015): AES-256-GCM, the nonce is a prefix, a counter and a last
         flag. The head commits to the key: nobody can make a stream that opens under two keys. PADMÉ (Nikitin et al.
         2019) for sizes.
Knows:   that a key seals one stream and no other: its nonces follow from it.
Never:   holds more than two chunks, or hands out a byte that has not verified.

    version u8 = 1 ‖ commitment 32 ‖ chunks of 65,536 bytes and 16 of tag, the last one of 1 to 65,536

A chunk cannot be swapped, left out, repeated or put elsewhere: its place is in its nonce. The stream cannot be cut or
extended: only its end has the last flag. Whether it is this stream and not another one under the same key, its digest
tells: SHA-256(head ‖ SHA-256 of each sealed chunk).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nightmail.e2ee.errors import OtherKey, StreamBroken, UnknownVersion
from nightmail.e2ee.kdf import hkdf
from nightmail.e2ee.labels import Label

from .padding import Unpadding, padded_size, padding_of

VERSION = 1
KEY_BYTES = 32
COMMITMENT_BYTES = 32
PREFIX_BYTES = 7
HEAD_BYTES = 1 + COMMITMENT_BYTES
CHUNK_BYTES = 65_536
TAG_BYTES = 16
SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES
CHUNKS_MAX = 1 << 32
_ZERO_SALT = bytes(32)


class SealedChunk(NamedTuple):
    data: bytes
    digest: bytes
    """SHA-256 of the data, so that what carries it can check it without a key."""


class StreamCipher:
    """One key, spread over cipher key, commitment and nonce prefix."""

    def __init__(self, key: bytes) -> None:
        out = hkdf(_ZERO_SALT, key, Label.STREAM, KEY_BYTES + COMMITMENT_BYTES + PREFIX_BYTES)
        self._cipher = AESGCM(out[:KEY_BYTES])
        self.commitment = out[KEY_BYTES : KEY_BYTES + COMMITMENT_BYTES]
        self._prefix = out[KEY_BYTES + COMMITMENT_BYTES :]
        self.head = bytes((VERSION,)) + self.commitment

    def seal(self, index: int, plaintext: bytes | memoryview, *, is_last: bool) -> bytes:
        return self._cipher.encrypt(self._nonce(index, is_last=is_last), plaintext, self.head)

    def open(self, index: int, sealed: bytes | memoryview, *, is_last: bool) -> bytes:
        """Raises StreamBroken."""
        if not TAG_BYTES < len(sealed) <= SEALED_CHUNK_BYTES:
            raise StreamBroken(index)
        try:
            return self._cipher.decrypt(self._nonce(index, is_last=is_last), sealed, self.head)
        except InvalidTag:
            raise StreamBroken(index) from None

    def check_head(self, head: bytes) -> None:
        """Raises UnknownVersion, StreamBroken, OtherKey."""
        if head and head[0] != VERSION:
            raise UnknownVersion("sealed stream", head[0])
        if len(head) != HEAD_BYTES:
            raise StreamBroken(0)
        if not hmac.compare_digest(head[1:], self.commitment):
            raise OtherKey

    def _nonce(self, index: int, *, is_last: bool) -> bytes:
        if index >= CHUNKS_MAX:
            raise StreamBroken(index)
        return self._prefix + index.to_bytes(4, "big") + bytes((is_last,))


class _Digest:
    """The digest of a stream, chunk by chunk."""

    def __init__(self, head: bytes) -> None:
        self._whole = sha256(head)

    def take(self, sealed: bytes | memoryview) -> bytes:
        digest = sha256(sealed).digest()
        self._whole.update(digest)
        return digest

    def value(self) -> bytes:
        return self._whole.digest()


class StreamSealer:
    """Seals one content. The key must be fresh: it seals nothing else."""

    def __init__(self, key: bytes) -> None:
        self._cipher = StreamCipher(key)
        self._digest = _Digest(self.head)
        self._next = 0
        self.content_bytes = 0

    @property
    def head(self) -> bytes:
        """What stands before the chunks."""
        return self._cipher.head

    @property
    def digest(self) -> bytes:
        """Of everything, once all chunks were taken from `chunks`."""
        return self._digest.value()

    def chunks(self, content: Iterable[bytes]) -> Iterator[SealedChunk]:
        """Every sealed chunk, the last one with the padding's end. Call it once."""
        held = bytearray()
        for piece in content:
            self.content_bytes += len(piece)
            held += piece
            yield from self._full_chunks(held)
        for zeros in padding_of(self.content_bytes):
            # What is held back is never empty: whether a chunk is the last one shows when something follows.
            yield from self._full_chunks(held, keeps=1)
            held += zeros
        yield from self._full_chunks(held, keeps=1)
        yield self._seal(bytes(held), is_last=True)

    def _full_chunks(self, held: bytearray, keeps: int = 0) -> Iterator[SealedChunk]:
        at = 0
        while len(held) - at >= CHUNK_BYTES + keeps:
            yield self._seal(bytes(held[at : at + CHUNK_BYTES]), is_last=False)
            at += CHUNK_BYTES
        del held[:at]

    def _seal(self, plaintext: bytes, *, is_last: bool) -> SealedChunk:
        sealed = self._cipher.seal(self._next, plaintext, is_last=is_last)
        self._next += 1
        return SealedChunk(sealed, self._digest.take(sealed))


class StreamOpener:
    """Opens one stream. Only when `content` has ended without an error is it whole."""

    def __init__(self, key: bytes, digest: bytes | None = None, sealed_bytes: int | None = None) -> None:
        """`digest` is the one that the sender told; None: any stream under this key will do. `sealed_bytes` is how
        long it is at most, head included: a longer one is refused as soon as that shows."""
        self._cipher, self._wanted, self._most = StreamCipher(key), digest, sealed_bytes
        self._digest = _Digest(self._cipher.head)
        self._next = 0

    @property
    def digest(self) -> bytes:
        """Of what was taken."""
        return self._digest.value()

    def content(self, sealed: Iterable[bytes]) -> Iterator[bytes]:
        """The content, in pieces of at most a chunk. Call it once. Raises UnknownVersion, OtherKey, StreamBroken."""
        held, came, has_head = bytearray(), 0, False
        unpadding = Unpadding()
        for piece in sealed:
            came += len(piece)
            if self._most is not None and came > self._most:
                raise StreamBroken(self._next)
            held += piece
            if not has_head and len(held) >= HEAD_BYTES:
                self._cipher.check_head(bytes(held[:HEAD_BYTES]))
                del held[:HEAD_BYTES]
                has_head = True
            at = 0
            while has_head and len(held) - at > SEALED_CHUNK_BYTES:
                yield from unpadding.take(self._open(bytes(held[at : at + SEALED_CHUNK_BYTES]), is_last=False))
                at += SEALED_CHUNK_BYTES
            del held[:at]
        if not has_head:
            self._cipher.check_head(bytes(held))
        last = self._open(bytes(held), is_last=True)
        if self._wanted is not None and not hmac.compare_digest(self.digest, self._wanted):
            raise StreamBroken(self._next - 1)
        yield from unpadding.take(last)
        if not unpadding.is_right:
            raise StreamBroken(self._next - 1)

    def _open(self, sealed: bytes, *, is_last: bool) -> bytes:
        opened = self._cipher.open(self._next, sealed, is_last=is_last)
        self._digest.take(sealed)
        self._next += 1
        return opened


def digest_of(sealed: Iterable[bytes]) -> bytes:
    """The digest of a sealed stream, for which nobody needs its key. Whether it opens is another question."""
    held = bytearray()
    digest: _Digest | None = None
    for piece in sealed:
        held += piece
        if digest is None and len(held) >= HEAD_BYTES:
            digest = _Digest(bytes(held[:HEAD_BYTES]))
            del held[:HEAD_BYTES]
        at = 0
        while digest is not None and len(held) - at > SEALED_CHUNK_BYTES:
            digest.take(bytes(held[at : at + SEALED_CHUNK_BYTES]))
            at += SEALED_CHUNK_BYTES
        del held[:at]
    digest = digest or _Digest(b"")
    digest.take(bytes(held))
    return digest.value()


def sealed_size(content_bytes: int) -> int:
    """How long the stream of a content of this size is."""
    padded = padded_size(content_bytes)
    return HEAD_BYTES + padded + TAG_BYTES * -(-padded // CHUNK_BYTES)
