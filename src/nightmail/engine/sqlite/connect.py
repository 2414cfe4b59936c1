"""Opening the database with the settings that durability and deletion need.

Knows:   the pragmas, and what each failure means to an operator.
Touches: one database file and its write-ahead log, through the named VFS.
Never:   trusts a pragma that it has not read back.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

import apsw

from nightmail.engine.os_errors import cause
from nightmail.engine.ports import Damaged, EngineError, InUse, Unwritable

from . import schema
from .database_file import COPY_BYTES, DatabaseFile, open_raw
from .page_sums import read_sums, refresh_sums, sums_of_file, with_frames, write_sums
from .pages import PAGE_BYTES

BUSY_MS = 5_000


def open_writer(database: DatabaseFile, entropy: schema.Entropy) -> apsw.Connection:
    """Open or create it, bring its schema up to date, and leave nothing in the write-ahead log."""
    refresh_wal(database)
    db = _connect(database)
    try:
        schema.check(db, database.path)
        if db.readonly("main"):
            raise Unwritable(f"{database.path} can be read but not written")
        refresh_sums(database)
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}").fetchall()  # has an effect only on a new database
        _set(db, database, "journal_mode", "WAL", "wal")
        _set(db, database, "synchronous", "FULL", 2)
        # Deleted data is overwritten with zeros, and no temporary file ever holds a copy.
        _set(db, database, "secure_delete", "ON", 1)
        _set(db, database, "temp_store", "MEMORY", 2)
        _set(db, database, "cache_size", -database.cache_kib, -database.cache_kib)
        # We truncate the log ourselves: a failure within a commit would look like a failed commit.
        _set(db, database, "wal_autocheckpoint", 0, 0)
        if schema.number(db, "user_version") < schema.SUMMED:
            _begin_sums(database, db)
        schema.migrate(db, entropy)
        with suppress(apsw.FullError):  # then it is done later: reading and acknowledging must go on
            truncate_wal(database, db)
    except BaseException:
        db.close(True)
        raise
    return db


def open_reader(database: DatabaseFile, cache_kib: int) -> apsw.Connection:
    """Another connection, which cannot change anything."""
    db = _connect(database)
    try:
        _set(db, database, "query_only", 1, 1)
        _set(db, database, "temp_store", "MEMORY", 2)
        _set(db, database, "cache_size", -cache_kib, -cache_kib)
    except BaseException:
        db.close(True)
        raise
    return db


def refresh_wal(database: DatabaseFile) -> None:
    """Write the write-ahead log over itself and sync it, before SQLite reads it.

    After a sync that failed, the kernel may still show bytes that are not on the disk, and no later
    sync reports that. SQLite would take them for a commit and copy half of them into the database.
    Written again, they are dirty again, and this sync is true for them.
    """
    try:
        file = open_raw(database, database.path + "-wal")
    except apsw.CantOpenError:
        return  # There is none. If there is one that cannot be opened, SQLite will report it.
    try:
        size = file.xFileSize()
        for offset in range(0, size, COPY_BYTES):
            file.xWrite(file.xRead(min(COPY_BYTES, size - offset), offset), offset)
        if size:
            file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()


@contextmanager
def transaction(db: apsw.Connection) -> Generator[None]:
    """All or nothing. If the commit itself raises, only reopening tells which."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error, OSError):
            if db.in_transaction:
                db.execute("ROLLBACK")
        raise


def restart_wal(database: DatabaseFile, db: apsw.Connection) -> None:
    """Move everything into the database file, and let the write-ahead log restart in the space it has.

    For a log that is full, not for one that is old: its old content stays readable until it is
    overwritten or truncated.
    """
    _sum_wal(database, db)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)


def drain_wal(database: DatabaseFile, db: apsw.Connection) -> None:
    """Move into the database file what no reader needs, and wait for no reader.

    If that was everything, the next commit restarts the write-ahead log in the space it has.
    """
    _sum_wal(database, db)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def truncate_wal(database: DatabaseFile, db: apsw.Connection) -> None:
    """Move everything into the database file and truncate the write-ahead log to 0 bytes."""
    _sum_wal(database, db)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _begin_sums(database: DatabaseFile, db: apsw.Connection) -> None:
    """A database without checksums of its pages gets them, before the step that says that it has them."""
    # SQLite syncs the folder with a connection's first commit: then the names of the two files are durable.
    db.execute(f"PRAGMA user_version = {schema.number(db, 'user_version')}")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    sums = sums_of_file(database)
    write_sums(database, sums)
    write_sums(database, sums._replace(generation=1))


def _sum_wal(database: DatabaseFile, db: apsw.Connection) -> None:
    """Write down the checksums of what is about to be moved. Raises Damaged if there are none to go on from."""
    frames, moved = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    if frames <= moved:
        return
    if (sums := read_sums(database)) is None:
        raise Damaged(f"the checksums of {database.path} are missing or damaged")
    write_sums(database, with_frames(database, sums, frames, schema.read_identity(db), schema.read_pointer(db)))


def explain(error: BaseException, path: str, number: int = 0) -> EngineError:
    """The exception whose name says what the operator can do, with one sentence.

    `number`: the error of the system call that failed, if SQLite knows it.
    """
    if isinstance(error, EngineError):
        return error
    if isinstance(error, apsw.NotADBError):
        return Damaged(f"{path} is not a database, or its first page is damaged")
    if isinstance(error, apsw.CorruptError):
        return Damaged(f"{path} is damaged: {error}")
    if isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, PermissionError)):
        return Unwritable(f"{path} cannot be opened for writing: {error}")
    if isinstance(error, apsw.BusyError):
        return InUse(f"{path} is open in another program")
    if isinstance(error, apsw.FullError):
        return EngineError(f"no space is left to write {path}")
    if isinstance(error, OSError):
        number = error.errno or number
    return EngineError(f"{path} could not be read or written: {cause(number) if number else error}")


def _connect(database: DatabaseFile) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    db = apsw.Connection(database.path, flags=flags, vfs=database.vfs or None)
    try:
        # A connection is also closed when its disk has failed: closing must not write.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.set_busy_timeout(BUSY_MS)
        if database.alone:
            _set(db, database, "locking_mode", "EXCLUSIVE", "exclusive")
    except BaseException:
        db.close(True)
        raise
    return db


def _set(db: apsw.Connection, database: DatabaseFile, pragma: str, value: str | int, want: str | int) -> None:
    db.execute(f"PRAGMA {pragma} = {value}").fetchall()
    if (got := db.execute(f"PRAGMA {pragma}").get) != want:
        raise EngineError(f"{database.path}: SQLite answers {pragma} = {got}, but {want} is needed")
