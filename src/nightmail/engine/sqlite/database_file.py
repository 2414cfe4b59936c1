"""Where a database is, and how its files are reached byte by byte.

Touches: nothing until a file is opened.
Never:   opens a file of the database but through SQLite's own VFS: closing a descriptor of our own would drop its
         locks.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

COPY_BYTES = 1 << 16
"""SQLite's own VFS refuses a write of 128 KiB or more, and reports a full disk."""


class DatabaseFile(NamedTuple):
    """Where a database is and how to reach it."""

    path: str
    vfs: str = ""
    """"" is the operating system's."""
    alone: bool = False
    """One connection, exclusive: for a VFS without shared memory. Saves must then run inline."""
    cache_kib: int = 8_192
    """Page cache of the connection that writes."""


def open_raw(database: DatabaseFile, path: str, *, create: bool = False) -> apsw.VFSFile:
    """A file's bytes, to be read and written."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB
    return apsw.VFSFile(database.vfs, path, [flags | (apsw.SQLITE_OPEN_CREATE if create else 0), 0])
