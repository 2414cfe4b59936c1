"""A server that hands out something else than the blob it was asked for.

Knows:   which lie it tells at present, and which it has told of each blob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from nightmail.client.media.sealed_file import LocalFile, SealedFile
from nightmail.e2ee.streams.media import MediaPointer
from nightmail.e2ee.streams.stream import HEAD_BYTES, SEALED_CHUNK_BYTES

LIES = ("flip", "replay", "reorder", "cut", "head", "longer", "other blob", "other content")
FOUND = {
    "chunk_refused": {"flip", "replay", "reorder", "other blob"},
    "other_blob": {"head", "longer", "other blob"},
    "digest_differs": {"other content"},
}
"""Why a file is refused → the lies that are found so."""


class LyingAboutFiles:
    def __init__(self, chance: Random, folder: Path, pointers: Callable[[], Iterable[MediaPointer]]) -> None:
        """`pointers`: of all messages; somebody who has the key of one may help the server."""
        self._chance, self._folder, self._pointers = chance, folder, pointers
        self.lie = ""
        self.lied: dict[str, set[str]] = {}
        """Blob → how the server lied about it."""

    def begin(self) -> None:
        """Another lie, or none."""
        self.lie = self._chance.choice(("", *LIES))

    def told(self, blob: str, data: bytes, others: Iterable[bytes]) -> bytes:
        """What the server hands out; `others`: all blobs that it has."""
        second, third = HEAD_BYTES + SEALED_CHUNK_BYTES, HEAD_BYTES + 2 * SEALED_CHUNK_BYTES
        match self.lie:
            case "flip":
                lied = data[:-1] + bytes((data[-1] ^ 1,))
            case "replay" if len(data) > third:
                lied = data[:HEAD_BYTES] + data[second:third] + data[second:]
            case "reorder" if len(data) > third:
                lied = data[:HEAD_BYTES] + data[second:third] + data[HEAD_BYTES:second] + data[third:]
            case "cut":
                lied = data[: self._chance.randrange(len(data))]
            case "other blob":
                lied = self._chance.choice([each for each in others if len(each) == len(data)])
            case "head":
                lied = data[:1] + bytes(32) + data[HEAD_BYTES:]
            case "longer":
                lied = data + bytes(100)
            case "other content":
                lied = self._sealed_otherwise(blob) or data
            case _:
                return data
        if lied != data:
            self.lied.setdefault(blob, set()).add(self.lie)
        return lied

    def _sealed_otherwise(self, blob: str) -> bytes:
        for pointer in self._pointers():
            if pointer.blob_id == blob:
                path = self._folder / "forged"
                path.write_bytes(bytes(pointer.size))
                sealed = SealedFile(LocalFile(str(path), pointer.size, path.stat().st_mtime_ns), pointer.key)
                return bytes(sealed.piece(0, sealed.chunks).data)
        return b""
