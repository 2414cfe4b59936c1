"""A file on this disk, sealed chunk by chunk while it is read.

Knows:   where each chunk of the sealed stream begins, so that any part of it can be sealed, and sealed again alike.
Touches: the file, for reading. Every method blocks.
Never:   holds more than the piece that was asked for; reads on in a file that has changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from nightmail.client.media_errors import FileAltered, FileUnusable
from nightmail.e2ee.streams.padding import padded_size
from nightmail.e2ee.streams.stream import CHUNK_BYTES, HEAD_BYTES, SEALED_CHUNK_BYTES, StreamCipher, sealed_size

DIGEST_BYTES = 32


class LocalFile(NamedTuple):
    """A file as it was when the person chose it."""

    path: str
    size: int
    changed_ns: int


class SealedPiece(NamedTuple):
    data: bytearray
    digests: bytes
    """Of each chunk, one after the other."""


def look_at(path: str | os.PathLike[str]) -> LocalFile:
    """Raises FileUnusable."""
    whole = os.path.abspath(os.path.expanduser(path))
    with _opened(whole) as file:
        found = os.fstat(file)
    return LocalFile(whole, found.st_size, found.st_mtime_ns)


class SealedFile:
    def __init__(self, file: LocalFile, key: bytes) -> None:
        """The key seals this content, and no other."""
        self._file, self._cipher = file, StreamCipher(key)
        self._padded = padded_size(file.size)
        self.size = sealed_size(file.size)
        self.chunks = -(-self._padded // CHUNK_BYTES)

    def piece(self, first: int, count: int) -> SealedPiece:
        """Chunks from the first one on, with the head before chunk 0. Raises FileAltered, FileUnusable."""
        last = min(first + count, self.chunks)
        end = self.size if last == self.chunks else _begin_of(last)
        data, digests, at = bytearray(end - _begin_of(first)), bytearray(), 0
        if first == 0:
            at = HEAD_BYTES
            data[:at] = self._cipher.head
        with _opened(self._file.path) as file:
            self._check(file)
            for index in range(first, last):
                sealed = self._cipher.seal(index, self._padded_chunk(file, index), is_last=index == self.chunks - 1)
                data[at : at + len(sealed)] = sealed
                at += len(sealed)
                digests += sha256(sealed).digest()
            self._check(file)
        return SealedPiece(data, bytes(digests))

    def digest(self, digests: bytes) -> bytes:
        """Of the whole stream, from those of all its chunks."""
        assert len(digests) == self.chunks * DIGEST_BYTES
        return sha256(self._cipher.head + digests).digest()

    def _padded_chunk(self, file: int, index: int) -> bytes:
        at = index * CHUNK_BYTES
        size = min(CHUNK_BYTES, self._padded - at)
        content = max(0, min(size, self._file.size - at))
        read = _read(file, at, content)
        if content == size:
            return read
        mark = b"\x80" if self._file.size >= at else b""
        return (read + mark).ljust(size, b"\0")

    def _check(self, file: int) -> None:
        found = os.fstat(file)
        if (found.st_size, found.st_mtime_ns) != (self._file.size, self._file.changed_ns):
            raise FileAltered


def _begin_of(index: int) -> int:
    """Where a chunk begins in the stream; the first one has the head before it."""
    return HEAD_BYTES + index * SEALED_CHUNK_BYTES if index else 0


def chunk_at(offset: int) -> int | None:
    """The chunk that begins at this place of the stream; None: none does."""
    if offset == 0:
        return 0
    index, rest = divmod(offset - HEAD_BYTES, SEALED_CHUNK_BYTES)
    return index if index >= 0 and not rest else None


def _read(file: int, at: int, size: int) -> bytes:
    held = os.pread(file, size, at)
    while len(held) < size:
        if not (read := os.pread(file, size - len(held), at + len(held))):
            raise FileAltered
        held += read
    return held


@contextmanager
def _opened(path: str) -> Generator[int]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise FileUnusable(path, error.strerror or "it cannot be opened") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileUnusable(path, "it is not a file")
        yield file
    except OSError as error:
        raise FileUnusable(path, error.strerror or "it cannot be read") from None
    finally:
        os.close(file)
