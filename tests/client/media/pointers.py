"""Sealed files without a server: what a peer would fetch, and what its message says of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from nightmail.client.media.sealed_file import LocalFile, SealedFile, look_at
from nightmail.e2ee.streams.media import MediaPointer

KEY = bytes(range(32))
BLOB = bytes(range(1, 17))
CONTENT = Random(3).randbytes(300_000)


def a_file(folder: Path, data: bytes = CONTENT, name: str = "notes.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def sealed(folder: Path, data: bytes = CONTENT, key: bytes = KEY) -> tuple[bytes, MediaPointer]:
    """The stream of a file, and the pointer to it."""
    file = SealedFile(look_at(a_file(folder, data)), key)
    piece = file.piece(0, file.chunks)
    return bytes(piece.data), MediaPointer(5, BLOB, key, file.digest(piece.digests), len(data), "notes.txt")


def changed_since(file: LocalFile) -> LocalFile:
    return file._replace(changed_ns=file.changed_ns + 1)
