"""SQLite on the simulated disk.

Knows:   what SQLite asks of an operating system, and what Linux would do for it.
Touches: one `Disk` at a time; `vfs.disk` may be exchanged between two cases.
Never:   claims a virtue of the disk (atomic writes, safe appends): SQLite must assume none.
"""

from __future__ import annotations

import errno
from random import Random
from types import TracebackType

import apsw

from .disk import Disk, DiskFile

WRITE_BYTES = 128 * 1024
_CREATE = apsw.SQLITE_OPEN_CREATE
_SYNCS_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


class DiskVfs(apsw.VFS):
    """There is no shared memory: connections must set locking_mode=EXCLUSIVE before they touch a WAL."""

    def __init__(self, name: str, disk: Disk, chance: Random, *, default: bool = False) -> None:
        self.name, self.disk, self.chance = name, disk, chance
        super().__init__(name, "", makedefault=default)

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """What was raised reaches the caller of SQLite; nothing is printed on the way."""
        return True

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        return self.chance.randbytes(numbytes)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        return self.disk.exists(pathname)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        try:
            self.disk.remove(filename)
        except FileNotFoundError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_DELETE_NOENT, error) from error
        except OSError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_DELETE, error) from error
        if syncdir:
            self.disk.sync_folder(_folder(filename))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _VfsFile:  # noqa: N802 # pyright: ignore[reportIncompatibleMethodOverride]
        assert name is not None, "temporary files belong in memory"
        path = name if isinstance(name, str) else name.filename()
        flags[1] = flags[0]
        try:
            creates = bool(flags[0] & _CREATE)
            is_new = creates and not self.disk.exists(path)
            file = self.disk.create(path) if is_new else self.disk.open(path)
            return _VfsFile(self.disk, path, file, creates and bool(flags[0] & _SYNCS_FOLDER))
        except OSError as error:
            raise _sqlite(apsw.CantOpenError, apsw.SQLITE_CANTOPEN, error) from error


class _VfsFile:
    def __init__(self, disk: Disk, path: str, file: DiskFile, syncs_folder: bool) -> None:
        self._disk, self._path, self._file = disk, path, file
        self._syncs_folder = syncs_folder
        """With its first sync, as SQLite does on Linux for journals that it would create if they were not there."""

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        return True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        try:
            return self._file.read(offset, amount)
        except OSError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_READ, error) from error

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        assert len(data) < WRITE_BYTES, "SQLite's own VFS would call this a full disk"
        try:
            self._file.write(offset, bytes(data))
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise _sqlite(apsw.FullError, apsw.SQLITE_FULL, error) from error
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_WRITE, error) from error

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        try:
            self._file.truncate(newsize)
        except OSError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_TRUNCATE, error) from error

    def xSync(self, flags: int) -> None:  # noqa: N802
        try:
            self._file.sync()
            if self._syncs_folder:
                self._disk.sync_folder(_folder(self._path))
                self._syncs_folder = False
        except OSError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_FSYNC, error) from error

    def xFileSize(self) -> int:  # noqa: N802
        try:
            return self._file.size()
        except OSError as error:
            raise _sqlite(apsw.IOError, apsw.SQLITE_IOERR_FSTAT, error) from error

    def xClose(self) -> None:  # noqa: N802
        self._file.close()

    # One process, one connection: every lock is granted.

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 512

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _sqlite(kind: type[apsw.Error], code: int, error: OSError) -> apsw.Error:
    raised = kind(error.strerror or str(error))
    vars(raised).update(result=code & 0xFF, extendedresult=code)
    return raised
