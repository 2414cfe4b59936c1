"""The sealed files of peers that a profile keeps: verified as they come (`stream_check.py`), and opened when they are
saved (`saved_file.py`).

Touches: the folder `media` of the profile. Every method blocks.
Never:   writes a byte that has not verified; gives a file its name before all of it is durable; uses a peer's text in
         a path.

    media/{blob}.part    the beginning of a stream, every chunk of it verified
    media/{blob}         a whole stream: still sealed, its key is in the message
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nightmail.client.media_errors import FileRefused, FileUnusable, OtherBlob
from nightmail.client.profile.key_places import make_folder, sync_folder
from nightmail.e2ee.streams.media import MediaPointer, parse_blob_id
from nightmail.e2ee.streams.stream import SEALED_CHUNK_BYTES

from .saved_file import SavingFile
from .stream_check import StreamCheck

FOLDER = "media"


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
        with SavingFile.begun(pointer, to) as saving:
            saving.begin_again()
            try:
                for content in self.contents(pointer):
                    saving.write(content)
                return saving.finish(overwrite=overwrite)
            finally:
                saving.drop()


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
