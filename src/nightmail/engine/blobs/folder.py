"""Blobs as files of one folder.

    {first 3 digits of the name}/{name}.part    grows; its head says how much of it is confirmed
    {first 3 digits of the name}/{name}         whole

Knows:   the form of a file: a head of 16 bytes (a mark, and the confirmed size as a little-endian u64), then the bytes.
         The head counts only while the file grows.
Touches: the folder, on the threads that `execute` has.
Never:   confirms what is not synced, or gives a file its last name before that.

A file that grows may hold more than its head says: a piece whose checksum was wrong, or what a crash left behind. It is
overwritten by the next piece.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from nightmail.engine.durable import make_folder, sync_folder
from nightmail.engine.os_errors import cause, is_out_of_space
from nightmail.engine.ports import Post
from nightmail.engine.worker import Execute
from nightmail.model.blobs import BlobId

from .jobs import BlobJobs
from .port import BlobFailed, Held

HEAD = struct.Struct("<8sQ")
MARK = b"nmblob1\0"
PART = ".part"
SHELF_DIGITS = 3
NO_SPACE = BlobFailed("the disk of the media folder is nearly full", is_full=True)
SHORT = BlobFailed("a file of the media folder is shorter than what was written to it")


def said(error: Exception) -> BlobFailed:
    number = error.errno if isinstance(error, OSError) else None
    return BlobFailed(f"the media folder cannot be used: {cause(number)}", is_out_of_space(number))


class FolderBlobs:
    """`Blobs`. Below `reserve_bytes` of free space nothing is written: the log may be on the same disk."""

    def __init__(self, folder: Path, *, post: Post, execute: Execute, reserve_bytes: int) -> None:
        """Raises OSError if the folder cannot be made."""
        make_folder(folder)
        self._folder, self._reserve = folder, reserve_bytes
        self._jobs = BlobJobs(post, execute, (OSError,), said)

    def held(self, blob: BlobId, done: Callable[[Held | BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._held(blob), done)

    def write(self, blob: BlobId, offset: int, data: bytes, done: Callable[[BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._write(blob, offset, data), done)

    def confirm(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._confirm(blob, size), done)

    def finish(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._finish(blob, size), done)

    def read(self, blob: BlobId, offset: int, limit: int, done: Callable[[bytes | BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._read(blob, offset, limit), done)

    def remove(self, blob: BlobId, done: Callable[[BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._remove(blob), done)

    def names(
        self, after: BlobId | None, limit: int, done: Callable[[Sequence[BlobId] | BlobFailed], None]
    ) -> None:  # fmt: skip
        self._jobs.run(lambda: self._names(after, limit), done)

    def open_whole(self, blob: BlobId) -> BinaryIO:
        """Its bytes, from the first on; to be called on a thread. Raises OSError."""
        file = self._paths(blob)[0].open("rb")
        file.seek(HEAD.size)
        return file

    # --- on a thread --------------------------------------------------------------------------

    def _held(self, blob: BlobId) -> Held | None:
        whole, part = self._paths(blob)
        try:
            return Held(whole.stat().st_size - HEAD.size, is_whole=True)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return Held(_confirmed(descriptor), is_whole=False)
        finally:
            os.close(descriptor)

    def _write(self, blob: BlobId, offset: int, data: bytes) -> BlobFailed | None:
        space = os.statvfs(self._folder)
        if space.f_bavail * space.f_frsize < self._reserve + len(data):
            return NO_SPACE
        descriptor = self._open_part(blob)
        try:
            _write_all(descriptor, HEAD.size + offset, data)
        finally:
            os.close(descriptor)
        return None

    def _confirm(self, blob: BlobId, size: int) -> None:
        descriptor = self._open_part(blob)
        try:
            before = _confirmed(descriptor)
            os.fdatasync(descriptor)
            # The head lies in one sector, so a power cut leaves the old one or the new one.
            _write_all(descriptor, 0, HEAD.pack(MARK, size))
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if not before:
            sync_folder(self._shelf(blob))

    def _finish(self, blob: BlobId, size: int) -> BlobFailed | None:
        whole, part = self._paths(blob)
        if not whole.exists():
            descriptor = self._open_part(blob)
            try:
                if os.fstat(descriptor).st_size < HEAD.size + size:
                    return SHORT
                os.ftruncate(descriptor, HEAD.size + size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            part.rename(whole)
        sync_folder(self._shelf(blob))
        return None

    def _read(self, blob: BlobId, offset: int, limit: int) -> bytes | None:
        try:
            descriptor = os.open(self._paths(blob)[0], os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return os.pread(descriptor, limit, HEAD.size + offset)
        finally:
            os.close(descriptor)

    def _remove(self, blob: BlobId) -> None:
        for path in self._paths(blob):
            path.unlink(missing_ok=True)
        shelf = self._shelf(blob)
        if shelf.exists():
            sync_folder(shelf)

    def _names(self, after: BlobId | None, limit: int) -> Sequence[BlobId]:
        first = str(after) if after else ""
        found: list[BlobId] = []
        for shelf in sorted(os.listdir(self._folder)):
            if shelf < first[:SHELF_DIGITS] or not (self._folder / shelf).is_dir():
                continue
            names = {name.removesuffix(PART) for name in os.listdir(self._folder / shelf)}
            for name in sorted(names):
                if name > first and (blob := _parsed(name)):
                    found.append(blob)
                    if len(found) == limit:
                        return found
        return found

    def _open_part(self, blob: BlobId) -> int:
        """The file that grows, made if it is missing: then its head confirms nothing."""
        _, part = self._paths(blob)
        try:
            return os.open(part, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            make_folder(part.parent)
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _write_all(descriptor, 0, HEAD.pack(MARK, 0))
            except OSError:
                os.close(descriptor)
                raise
            return descriptor

    def _shelf(self, blob: BlobId) -> Path:
        return self._folder / str(blob)[:SHELF_DIGITS]

    def _paths(self, blob: BlobId) -> tuple[Path, Path]:
        shelf, name = self._shelf(blob), str(blob)
        return shelf / name, shelf / f"{name}{PART}"


def _confirmed(descriptor: int) -> int:
    """0 also for a file whose head a crash has not left whole."""
    head = os.pread(descriptor, HEAD.size, 0)
    if len(head) < HEAD.size:
        return 0
    mark, size = HEAD.unpack(head)
    return size if mark == MARK else 0


def _write_all(descriptor: int, offset: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _parsed(name: str) -> BlobId | None:
    try:
        return BlobId.parse(name)
    except ValueError:
        return None
