"""A sealed file of a peer: verified chunk by chunk as it comes, and opened into a file outside the profile.

Knows:   from the message how long the stream is and which digest it has, so a chunk's place is never guessed.
Touches: the folder `media` of the profile; for saving, the folder that the person chose. Every method blocks.
Never:   writes a byte that has not verified; gives a file its name before all of it is durable; uses a peer's text in
         a path of the profile.

    media/{blob}.part    the beginning of a stream, every chunk of it verified
    media/{blob}         a whole stream: still sealed, its key is in the message
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO

from nightmail.client.media_errors import ChunkRefused, DigestDiffers, FileRefused, FileUnusable, OtherBlob
from nightmail.client.profile.key_places import make_folder, sync_folder
from nightmail.e2ee.errors import OtherKey, Rejected, StreamBroken
from nightmail.e2ee.streams.media import MediaPointer, parse_blob_id
from nightmail.e2ee.streams.stream import CHUNK_BYTES, HEAD_BYTES, SEALED_CHUNK_BYTES, StreamCipher

from .names import free_path

FOLDER = "media"


class StreamCheck:
    """Takes a stream in blocks, and hands out each chunk once it has verified; the last one once all of it has."""

    def __init__(self, pointer: MediaPointer) -> None:
        self._pointer, self._cipher = pointer, StreamCipher(pointer.key)
        self._digest = sha256()
        self._held = bytearray()
        self._next = 0
        self.came = 0
        """Bytes that were taken."""
        self.verified = 0
        """Bytes of the stream, from its beginning, that have verified."""

    def take(self, block: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Sealed parts of the stream with their content. Raises FileRefused; the object is of no use then."""
        self._held += block
        self.came += len(block)
        size = self._pointer.sealed_bytes
        if self.came > size:
            raise OtherBlob("it is longer than it should be")
        if not self.verified:
            if len(self._held) < HEAD_BYTES:
                return
            yield self._head(), b""
        at = 0
        while (length := min(SEALED_CHUNK_BYTES, size - self.verified)) and len(self._held) - at >= length:
            sealed = bytes(self._held[at : at + length])
            at += length
            yield sealed, self._chunk(sealed, is_last=self.verified + length == size)
        del self._held[:at]

    def drop_rest(self) -> None:
        """Forget what came behind the last chunk that has verified."""
        self._held.clear()
        self.came = self.verified

    def _head(self) -> bytes:
        head = bytes(self._held[:HEAD_BYTES])
        del self._held[:HEAD_BYTES]
        try:
            self._cipher.check_head(head)
        except (OtherKey, Rejected):
            raise OtherBlob("its key is another one") from None
        self._digest.update(head)
        self.verified = HEAD_BYTES
        return head

    def _chunk(self, sealed: bytes, *, is_last: bool) -> bytes:
        index = self._next
        try:
            opened = self._cipher.open(index, sealed, is_last=is_last)
        except StreamBroken:
            raise ChunkRefused(index) from None
        self._digest.update(sha256(sealed).digest())
        if is_last and not secrets.compare_digest(self._digest.digest(), self._pointer.digest):
            raise DigestDiffers
        content = max(0, min(len(opened), self._pointer.size - index * CHUNK_BYTES))
        mark = b"\x80" if 0 <= self._pointer.size - index * CHUNK_BYTES < len(opened) else b""
        if opened[content:] != mark.ljust(len(opened) - content, b"\0"):
            raise ChunkRefused(index)
        self._next += 1
        self.verified += len(sealed)
        return opened[:content]


class KeptFiles:
    """The sealed files of a profile."""

    def __init__(self, profile: Path) -> None:
        self._folder = profile / FOLDER

    def path(self, blob: str) -> Path:
        """Raises Rejected for anything that is not the id of a blob."""
        owner, secret = parse_blob_id(blob)
        return self._folder / f"{owner:013x}-{secret.hex()}"

    def has(self, blob: str) -> bool:
        return self.path(blob).exists()

    def erase(self, blob: str) -> None:
        """Its key is gone already: nobody could open what a disk may still hold of it."""
        for path in (self.path(blob), self._part(blob)):
            with suppress(FileNotFoundError):
                path.unlink()

    def _part(self, blob: str) -> Path:
        return self.path(blob).with_suffix(".part")

    @contextmanager
    def arriving(self, pointer: MediaPointer) -> Generator[ArrivingFile]:
        """A file to be fetched, with what of it came before. Raises FileUnusable."""
        part = self._part(pointer.blob_id)
        try:
            make_folder(self._folder)
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise FileUnusable(str(part), error.strerror or "it cannot be opened") from None
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            yield ArrivingFile(file, part, self.path(pointer.blob_id), pointer)

    def contents(self, pointer: MediaPointer) -> Iterator[bytes]:
        """What is in a kept file, each piece verified. Raises FileRefused, FileUnusable."""
        check, path = StreamCheck(pointer), self.path(pointer.blob_id)
        try:
            with path.open("rb") as file:
                while block := file.read(4 * SEALED_CHUNK_BYTES):
                    for _, content in check.take(block):
                        yield content
        except OSError as error:
            raise FileUnusable(str(path), error.strerror or "it cannot be read") from None
        if check.verified != pointer.sealed_bytes:
            raise OtherBlob("it is shorter than it should be")

    def save(self, pointer: MediaPointer, to: Path, *, overwrite: bool = False) -> Path:
        """Open a kept file into a folder, under its own name, or to a path; where it is then. Raises FileRefused,
        FileUnusable: nothing of it is there then."""
        final = free_path(to, pointer.name) if to.is_dir() else to
        part = final.with_name(f".{secrets.token_hex(8)}.part")
        try:
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(file, "wb") as out:
                    for content in self.contents(pointer):
                        out.write(content)
                    out.flush()
                    os.fsync(out.fileno())
                if overwrite:
                    part.replace(final)
                else:
                    os.link(part, final)
            finally:
                with suppress(FileNotFoundError):
                    part.unlink()
            sync_folder(final.parent)
        except OSError as error:
            raise FileUnusable(str(final), error.strerror or "it cannot be written") from None
        return final


class ArrivingFile:
    """A stream on its way into the profile."""

    def __init__(self, file: IO[bytes], part: Path, final: Path, pointer: MediaPointer) -> None:
        self._file, self._part, self._final, self._pointer = file, part, final, pointer
        self._check = self._look()
        self.first = self._check.verified
        """From where on it is still to be fetched."""

    def _look(self) -> StreamCheck:
        """What came before a crash is verified again, and what is not right is fetched again."""
        check = StreamCheck(self._pointer)
        try:
            while check.came < self._pointer.sealed_bytes and (block := self._file.read(SEALED_CHUNK_BYTES)):
                for _ in check.take(block):
                    pass
        except FileRefused:
            check = StreamCheck(self._pointer)
        check.drop_rest()
        self._file.truncate(check.verified)
        self._file.seek(check.verified)
        return check

    def take(self, block: bytes) -> None:
        """Raises FileRefused, FileUnusable."""
        for sealed, _ in self._check.take(block):
            try:
                self._file.write(sealed)
            except OSError as error:
                raise FileUnusable(str(self._part), error.strerror or "it cannot be written") from None

    def finish(self) -> None:
        """All of it came: it is durable under its name when this returns."""
        assert self._check.verified == self._pointer.sealed_bytes
        try:
            os.fsync(self._file.fileno())
            self._part.replace(self._final)
            sync_folder(self._final.parent)
        except OSError as error:
            raise FileUnusable(str(self._final), error.strerror or "it cannot be written") from None

    def drop(self) -> None:
        """What came is of no use."""
        with suppress(FileNotFoundError):
            self._part.unlink()
