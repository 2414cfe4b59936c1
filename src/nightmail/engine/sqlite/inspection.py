"""Reads what a database says about itself, and changes nothing in its folder.

Knows:   how SQLite opens a database without making or emptying a file beside it.
Touches: nothing; it only reads.
Never:   runs while another connection of this process has the database open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote

import apsw

from nightmail.engine.ports import Damaged

from . import schema
from .connect import explain
from .database_file import DatabaseFile
from .page_sums import NO_IDENTITY, SUFFIXES, check_pages, pages_in_wal, raw, read_sums


class Inspected(NamedTuple):
    identity: bytes
    pointer: int


def inspect(database: DatabaseFile, names: Collection[str], *, has_log: bool) -> Inspected | None:
    """None if no database was ever finished here. Raises EngineError.

    `names` are the files in its folder. Before there is a log, a power cut may leave anything of a database.
    """
    try:
        return _inspect(database, names, has_log)
    except (apsw.Error, OSError) as error:
        raise explain(error, database.path) from error


def size_of(database: DatabaseFile, suffix: str, names: Collection[str]) -> int | None:
    """Bytes of the database's file with this suffix; None if it is not there."""
    if (database.path + suffix).rpartition("/")[2] not in names:
        return None
    with raw(database, suffix) as file:
        return file.xFileSize()


def _inspect(database: DatabaseFile, names: Collection[str], has_log: bool) -> Inspected | None:
    if size_of(database, "-journal", names):
        # SQLite uses one only while it makes a database; the next start undoes what is in it.
        return None
    size, wal_size = size_of(database, "", names), size_of(database, "-wal", names)
    if not size:
        if wal_size and has_log:
            what = "is missing" if size is None else "is empty"
            raise Damaged(f"{database.path} {what}, but its write-ahead log is not: put the file back")
        return None
    with closing(open_unchanged(database, has_wal=bool(wal_size))) as db:
        schema.check(db, database.path)
        if not schema.number(db, "user_version"):
            return None
        found = Inspected(schema.read_identity(db), schema.read_pointer(db))
        if schema.number(db, "user_version") >= schema.SUMMED:
            frames = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0] if wal_size else 0
            check_sums(database, names, found, frames)
        return found


def check_sums(
    database: DatabaseFile,
    names: Collection[str],
    found: Inspected,
    frames: int,
    on_page: Callable[[int], None] | None = None,
) -> None:
    """The first `frames` frames of the write-ahead log are good; SQLite has compared their own checksums."""
    if (sums := read_sums(database, names)) is None:
        raise Damaged(
            f"the checksums of {database.path} ({' and '.join(SUFFIXES)}) are missing or damaged: put them back"
        )
    if sums.identity not in (found.identity, NO_IDENTITY):
        raise Damaged(f"{database.path} is foreign: its checksums are of data folder {sums.identity.hex()}")
    if found.pointer < sums.pointer:
        raise Damaged(
            f"{database.path} holds checkpoint {found.pointer}, but its checksums are of {sums.pointer}: "
            "it or its write-ahead log is damaged, or of an earlier time"
        )
    check_pages(database, sums, pages_in_wal(database, frames), on_page)


def open_unchanged(database: DatabaseFile, *, has_wal: bool) -> apsw.Connection:
    """A connection that reads, and changes nothing in the folder. Nobody else may have the database open."""
    if not has_wal:
        # As immutable: otherwise SQLite would make an empty write-ahead log.
        uri = f"file:{quote(database.path)}?immutable=1"
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs=database.vfs or None)
    db = apsw.Connection(database.path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=database.vfs or None)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Exclusive: then the index of the write-ahead log is in memory, and no file is made for it.
        db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        db.execute("PRAGMA query_only = 1").fetchall()
    except BaseException:
        db.close(True)
        raise
    return db
