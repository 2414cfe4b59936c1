"""The few operations that a log needs of a disk, as a port: a simulated disk can take its place.

Every call may raise OSError. Written data may be lost until `sync` returns. After a `sync` that
failed, nothing is known about the data written since the last one that succeeded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from nightmail.engine.durable import sync_folder


class File(Protocol):
    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the file."""
        ...

    def write(self, offset: int, data: bytes) -> None:
        """All of it, or an OSError."""
        ...

    def sync(self) -> None:
        """Make the file's data durable (fdatasync)."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class Files(Protocol):
    """One folder."""

    def names(self) -> list[str]: ...

    def create(self, name: str, size: int) -> File:
        """A new file of `size` zero bytes, its space reserved, its name durable."""
        ...

    def open(self, name: str) -> File: ...

    def remove(self, name: str) -> None: ...


class OsFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, offset)

    def write(self, offset: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            view, offset = view[written:], offset + written

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class OsFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        return sorted(os.listdir(self._folder))

    def create(self, name: str, size: int) -> OsFile:
        path = self._folder / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
            sync_folder(self._folder)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return OsFile(descriptor)

    def open(self, name: str) -> OsFile:
        return OsFile(os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC))

    def remove(self, name: str) -> None:
        os.unlink(self._folder / name)
