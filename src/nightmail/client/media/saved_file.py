"""A peer's file on its way to where the person wants it, beside which it is written under a name of its own until it is
whole.

Knows:   which folder, and which name there; how much of it an earlier attempt has left.
Touches: the folder that the person chose. Every method blocks.
Never:   writes a byte that has not verified; gives a file its name before all of it is durable; replaces a file unless
         the person said so.

    .{32 hex digits}.part    the beginning of a file, or all of it; the digits follow from the blob, and tell nothing
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from nightmail.client.media_errors import FileUnusable
from nightmail.client.profile.key_places import sync_folder
from nightmail.e2ee.streams.media import MediaPointer
from nightmail.e2ee.streams.stream import CHUNK_BYTES

from .names import TRIES, free_path
from .stream_check import StreamCheck

WRITTEN_AT_ONCE = 4 * CHUNK_BYTES


def part_path(blob: str, to: Path) -> Path:
    """Where the file of a blob lies that is being saved to a folder, or at a path."""
    name = sha256(b"nightmail part " + blob.encode()).hexdigest()[:32]
    return (to if to.is_dir() else to.parent) / f".{name}.part"


def drop_part(blob: str, path: str) -> None:
    """Delete what an attempt has left; nothing, if that is no path of such a file."""
    part = Path(path)
    if path and part == part_path(blob, part):
        with suppress(OSError):
            part.unlink()


class SavingFile:
    def __init__(self, file: BinaryIO, part: Path, pointer: MediaPointer, to: Path) -> None:
        self._file, self._part, self._pointer, self._to = file, part, pointer, to
        self._check = StreamCheck(pointer)

    @classmethod
    @contextmanager
    def begun(cls, pointer: MediaPointer, to: Path) -> Generator[SavingFile]:
        """Call `go_on` or `begin_again` first. Raises FileUnusable."""
        part = part_path(pointer.blob_id, to)
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "r+b", buffering=WRITTEN_AT_ONCE) as file:
                yield cls(file, part, pointer, to)
        except OSError as error:
            raise FileUnusable(str(to), error.strerror or "it cannot be written") from None

    def go_on(self) -> int:
        """Take what an earlier attempt has left, and say from where on the stream is to be fetched. What is taken here
        is believed once the whole has verified, and not before."""
        taken = 0
        while self._pointer.size - taken >= CHUNK_BYTES and len(content := self._file.read(CHUNK_BYTES)) == CHUNK_BYTES:
            self._check.take_again(content)
            taken += CHUNK_BYTES
        self._file.seek(taken)
        self._file.truncate()
        return self._check.verified

    def begin_again(self) -> None:
        self._check = StreamCheck(self._pointer)
        self._file.seek(0)
        self._file.truncate()

    def take(self, block: bytes) -> None:
        """The next block of the stream. Raises FileRefused, FileUnusable."""
        for _, content in self._check.take(block):
            self.write(content)

    def write(self, content: bytes) -> None:
        """Content that has verified. Raises FileUnusable."""
        try:
            self._file.write(content)
        except OSError as error:
            raise self._unusable(error) from None

    def finish(self, *, overwrite: bool) -> Path:
        """All of it came: it is durable under its name when this returns. Raises FileUnusable."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            final = self._placed(overwrite=overwrite)
            sync_folder(final.parent)
        except OSError as error:
            raise self._unusable(error) from None
        return final

    def drop(self) -> None:
        """What is there under the name of its own is of no use."""
        with suppress(FileNotFoundError):
            self._part.unlink()

    def _placed(self, *, overwrite: bool) -> Path:
        """Where it is now. Raises OSError."""
        if self._to.is_dir():
            return self._placed_in_folder()
        if overwrite:
            self._part.replace(self._to)
        else:
            os.link(self._part, self._to)
            self.drop()
        return self._to

    def _placed_in_folder(self) -> Path:
        for _ in range(TRIES):
            path = free_path(self._to, self._pointer.name)
            try:
                os.link(self._part, path)
            except FileExistsError:
                continue  # Somebody was quicker: another name is free.
            self.drop()
            return path
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def _unusable(self, error: OSError) -> FileUnusable:
        return FileUnusable(str(self._to), error.strerror or "it cannot be written")
