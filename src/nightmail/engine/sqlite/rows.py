"""Rows in SQLite: a checkpoint is one transaction, and its pointer is part of it.

Knows:   three connections: one that writes, on the saver's thread; one that reads, on the loop's thread; and
         one that reads the delivery log, on any thread, so that the loop never waits for it.
Touches: one database file and its write-ahead log.
Never:   moves `pointer` before the commit is durable; shows the loop a checkpoint before its `done`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw
from msgspec import Struct

from nightmail.core.state import row_name
from nightmail.engine.ports import Checkpoint, Damaged, EngineError, Failed, Found, Overtaken, Post, is_nowhere
from nightmail.engine.worker import Execute
from nightmail.model.rows import EntryRange, Kept, Need, RowKey

from . import connect, row_sums, schema, statements
from .database_file import DatabaseFile
from .erasure import Eraser

T = TypeVar("T")

FILE_NAME = "rows.db"
RECALL_CACHE_KIB = 1_024
"""Page cache of the connection that reads the delivery log: it reads each page once."""


class SqliteSettings(Struct, frozen=True):
    cache_kib: int = 32_768
    """Page cache of the connection that writes. It fills up to this, because the delivery log goes through it.

    Below what one checkpoint changes, SQLite writes pages out early, and then once more.
    """
    reader_cache_kib: int = 8_192
    """Page cache of the connection that reads."""
    wal_truncate_ms: int = 600_000
    """Deleted data is out of the write-ahead log after this time."""
    wal_pages: int = 8_192
    """The write-ahead log restarts when it has grown to this."""
    forget_bytes: int = 4_194_304
    """Bytes of the delivery log dropped in one transaction: bounds what a save waits for, and the disk needed."""


DEFAULTS = SqliteSettings()


class SqliteRows:
    """The embedded engine's rows. Raises Damaged, TooNew, Unwritable or EngineError when opened."""

    def __init__(
        self,
        folder: Path,
        *,
        post: Post,
        execute: Execute,
        entropy: schema.Entropy,
        settings: SqliteSettings = DEFAULTS,
        vfs: str = "",
        alone: bool = False,
    ) -> None:
        self._database = DatabaseFile(str(folder / FILE_NAME), vfs, alone, settings.cache_kib)
        self._post = post
        self._execute = execute
        self._entropy = entropy
        self._settings = settings
        self._reading = threading.Lock()
        """Held while the reader is used; the saver takes it to replace the connections."""
        self._recalling = threading.Lock()
        """The same for the connection that reads the delivery log."""
        self._saving = threading.Lock()
        """Held by each job on the saver's thread; `close` waits for it."""
        self._writer: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._recaller: apsw.Connection | None = None
        self._closed = self._reopening = False
        self._wal_pages = 0
        self._tidied_at: int | None = None
        self._eraser = Eraser(self._database)
        self._identity, self._stored = self._open()
        self._pointer = self._stored

    @property
    def identity(self) -> bytes:
        """Drawn when the database is created. A log with another identity does not belong to these rows."""
        return self._identity

    @property
    def pointer(self) -> int:
        return self._pointer

    # --- reading, on the loop's thread ---

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        self._answer(lambda: self._read(needs), done)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        def read() -> list[tuple[int, bytes]]:
            with self._reading:
                wanted = shard, after, upto, limit
                found = self._using(self._reader).execute(statements.READ_FORWARDS, wanted).fetchall()
            return _checked_forwards(shard, found)

        self._answer(read, done)

    def _answer(self, read: Callable[[], T], done: Callable[[T | Failed], None]) -> None:
        try:
            found = read()
        except apsw.NoMemError as error:
            raise MemoryError from error  # A retry would not help.
        except Damaged:
            raise  # Nor would one here.
        except (apsw.Error, OSError, EngineError) as error:
            self._reopen_soon()
            done(Failed(str(connect.explain(error, self._database.path))))
        else:
            done(found)

    def _reopen_soon(self) -> None:
        """Replace the connections after a failed read, before the next one."""
        if self._reopening or self._closed:
            return
        self._reopening = True

        def reopen() -> None:
            with self._saving, suppress(EngineError):
                self._reopen()
            self._post(reopened)

        def reopened() -> None:
            self._reopening = False
            # The outcome of the last save is known now: a rebuild must start from what is stored.
            self._pointer = self._stored

        self._execute(reopen)

    def _read(self, needs: Sequence[Need]) -> Found | Failed:
        found: list[bytes | None | Sequence[tuple[int, bytes]]] = []
        with self._reading:
            db = self._using(self._reader)
            if self._stored != self._pointer and not db.in_transaction:
                # Reopened, it shows a checkpoint that the loop has not been told of yet (law L2).
                return Failed(f"{self._database.path} was reopened, and will be read when its checkpoint is known")
            query = db.execute
            for need in needs:
                # Point reads one by one: measured faster than one statement for all of them.
                if is_nowhere(need):
                    found.append(None if isinstance(need, RowKey) else [])
                elif isinstance(need, RowKey):
                    found.append(_checked_row(need, query(*statements.read_row(need)).get))
                else:
                    found.append(_checked_entries(need, query(statements.READ_RANGE, need).fetchall()))
        return found

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        """May also return a block that names none of them: devices are stored as 16-bit marks. Safe on any thread.

        Between two pieces nothing is held, neither a lock nor a view of the database.
        """
        wanted = [statements.marks((device,)) for device in devices]
        looked = self._recall(statements.READ_FIRST_NOTE, since)
        following = looked[0][0] if looked else 0
        while looked:
            looked = cast("list[tuple[int, bytes]]", self._recall(statements.READ_NOTES, since, following))
            for upto, marked in looked:
                if any(mark in marked for mark in wanted):
                    yield from self._recall_pieces(upto)
                following = upto + 1

    def _recall_pieces(self, upto: int) -> Iterator[bytes]:
        whole: Callable[..., bool] = row_sums.note_is_whole
        query, binding = statements.READ_FIRST_PIECE, (upto,)
        for nth in count(1):
            if not (found := self._recall(query, *binding)):
                return
            *others, lines = cast("tuple[Any, ...]", found[0])
            if not whole(*binding, *others, lines):
                raise Damaged(f"the delivery log of checkpoint {upto} is stored, but is not what was written")
            yield lines[: -row_sums.SUM_BYTES]
            whole, query, binding = row_sums.piece_is_whole, statements.READ_PIECE, (upto, nth)

    def scan(self, kind: Kept, after: tuple[int, int], limit: int) -> list[tuple[int, int, bytes]]:
        """Rows of a kind without a table of its own behind a key, in the order of their keys. Safe on any thread."""
        found = cast("list[tuple[int, int, int, bytes]]", self._recall(statements.SCAN_ROWS, kind, *after, limit))
        for a, b, version, stored in found:
            _checked_row(RowKey(kind, a, b), (version, stored))
        return [(a, b, stored[: -row_sums.SUM_BYTES]) for a, b, _, stored in found]

    def _recall(self, query: str, *binding: int) -> list[tuple[apsw.SQLiteValue, ...]]:
        try:
            with self._recalling:
                return self._using(self._recaller).execute(query, binding).fetchall()
        except (apsw.Error, OSError) as error:
            raise connect.explain(error, self._database.path) from error

    def _using(self, reader: apsw.Connection | None) -> apsw.Connection:
        db = self._writer if self._database.alone else reader
        if db is None:
            raise EngineError(f"{self._database.path} is closed")
        return db

    def _pin(self) -> None:
        """From here to `_unpin` the reader sees no newer checkpoint, even if one is committed."""
        with self._reading:
            if self._reader and not self._reader.in_transaction:
                self._reader.execute("BEGIN")
                self._reader.execute("SELECT value FROM meta WHERE key = 'pointer'").fetchall()

    def _unpin(self) -> None:
        with self._reading:
            if self._reader and self._reader.in_transaction:
                self._reader.execute("ROLLBACK")

    # --- saving ---

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        if checkpoint.upto < self._pointer:
            done(Overtaken(self._pointer))
            return

        def store() -> None:
            with self._saving:
                outcome = self._store(checkpoint)
            self._post(lambda: stored(outcome))

        def stored(outcome: Failed | None) -> None:
            self._unpin()
            if outcome is None:
                self._pointer = checkpoint.upto
            if outcome is None and self._is_tidying_due(checkpoint.at):
                # Before `done`, because the next save would delay it.
                self._execute(tidy)
            else:
                done(outcome)

        def tidy() -> None:
            with self._saving:
                self._tidy(checkpoint.at)
            self._post(lambda: done(None))

        self._execute(store)

    def _store(self, checkpoint: Checkpoint) -> Failed | None:
        """On the saver's thread. A disk error is returned, not raised: the loop waits for an answer."""
        before = self._stored
        try:
            if not self._writer:
                self._reopen()
                if self._stored == checkpoint.upto:
                    return None  # The commit had succeeded.
            assert self._writer
            # Only now: a pinned reader keeps the write-ahead log from being truncated, and a truncation waits for it.
            self._pin()
            with connect.transaction(self._writer):
                statements.write(self._writer, checkpoint, self._identity)
            self._stored = checkpoint.upto
            return None
        except (apsw.Error, OSError, EngineError) as error:
            number = self._writer.system_errno if self._writer else 0
            why = str(connect.explain(error, self._database.path, number))
            if isinstance(error, apsw.FullError) and self._writer and not self._writer.in_transaction:
                # The outcome is known, and reading goes on.
                return Failed(why)
            return self._settle(checkpoint.upto, before, why)

    def _settle(self, upto: int, before: int, why: str) -> Failed | None:
        """The outcome of the commit is unknown: reopen and read it."""
        try:
            self._reopen()
        except EngineError as error:
            return Failed(str(error))
        return None if before < upto == self._stored else Failed(why)

    def _reopen(self) -> None:
        with self._recalling, self._reading:
            self._drop_connections()
            if self._closed:
                raise EngineError(f"{self._database.path} is closed")
            _, self._stored = self._open()

    def _open(self) -> tuple[bytes, int]:
        try:
            self._writer = connect.open_writer(self._database, self._entropy)
            self._writer.set_wal_hook(self._wal_grew)
            if not self._database.alone:
                self._reader = connect.open_reader(self._database, self._settings.reader_cache_kib)
                self._recaller = connect.open_reader(self._database, RECALL_CACHE_KIB)
            return schema.read_identity(self._writer), schema.read_pointer(self._writer)
        except (apsw.Error, OSError) as error:
            self._drop_connections()
            raise connect.explain(error, self._database.path) from error
        except BaseException:
            self._drop_connections()
            raise

    def _wal_grew(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        def drop() -> None:
            with self._saving:
                outcome = self._drop_forwards(shard, upto)
            self._post(lambda: done(outcome))

        self._execute(drop)

    def _drop_forwards(self, shard: int, upto: int) -> Failed | None:
        """On the saver's thread."""
        if not self._writer:
            return Failed(f"{self._database.path} is closed, or will be opened again by the next save")
        try:
            with connect.transaction(self._writer):
                self._writer.execute(statements.DROP_FORWARDS, (shard, upto))
            return None
        except (apsw.Error, OSError) as error:
            # It may be dropped or not, and is dropped again; but the connection may be broken.
            with suppress(EngineError):
                self._reopen()
            return Failed(str(connect.explain(error, self._database.path)))

    # --- erasing what was deleted ---

    def _is_tidying_due(self, at: int) -> bool:
        if self._tidied_at is None:
            self._tidied_at = at
        return self._has_aged(at) or self._wal_pages >= self._settings.wal_pages

    def _has_aged(self, at: int) -> bool:
        return self._tidied_at is None or at - self._tidied_at >= self._settings.wal_truncate_ms

    def _tidy(self, at: int | None) -> None:
        """On the saver's thread: bound the write-ahead log; if it is time or `at` is None, erase deleted data.

        A failure is retried the next time.
        """
        if not self._writer:
            return
        try:
            if at is None or self._has_aged(at):
                connect.truncate_wal(self._database, self._writer)
                self._wal_pages = 0
                self._eraser.erase_some(self._writer)
                self._tidied_at = at or self._tidied_at
            else:
                connect.restart_wal(self._database, self._writer)
                self._wal_pages = 0
        except apsw.BusyError:
            pass
        except EngineError as error:
            self._fall(error)
        except (apsw.Error, OSError):
            # How much of it reached the disk is unknown: copy everything again from a log that is known.
            with suppress(EngineError):
                self._reopen()

    def _fall(self, error: EngineError) -> None:
        """From the saver's thread: going on would write on top of damage."""

        def tell() -> None:
            raise error

        self._post(tell)

    def forget(self, before: int) -> None:
        """Also empties the write-ahead log: called every hour, it erases deleted data of an idle server, too."""

        def drop_some() -> None:
            with self._saving:
                more = self._drop_notes(before)
                if not more:
                    self._tidy(None)
            if more:
                self._execute(drop_some)

        self._execute(drop_some)

    def _drop_notes(self, before: int) -> bool:
        if not self._writer:
            return False
        try:
            with connect.transaction(self._writer):
                more = statements.drop_notes(self._writer, before, self._settings.forget_bytes)
            if self._wal_pages >= self._settings.wal_pages:
                connect.drain_wal(self._database, self._writer)
            return more
        except EngineError as error:
            self._fall(error)
            return False
        except (apsw.Error, OSError):
            # Nothing depends on it, and the next call does it again; but the connection may be broken.
            with suppress(EngineError):
                self._reopen()
            return False

    def close(self) -> None:
        """Waits for the save under way."""
        self._closed = True
        with self._saving, self._recalling, self._reading:
            self._drop_readers()
            try:
                if self._writer:
                    connect.truncate_wal(self._database, self._writer)
            except (apsw.Error, OSError, EngineError):
                pass  # the next start does it, or says what is wrong
            finally:
                self._drop_connections()

    def _drop_connections(self) -> None:
        self._drop_readers()
        writer, self._writer = self._writer, None
        if writer:
            writer.close(True)

    def _drop_readers(self) -> None:
        readers = self._reader, self._recaller
        self._reader = self._recaller = None
        for db in readers:
            if db:
                db.close(True)


def _checked_row(key: RowKey, found: Any) -> bytes | None:
    """Raises Damaged if the row is not what was written."""
    if found is None:
        return None
    version, stored = found
    if not row_sums.row_is_whole(key, version, stored):
        raise Damaged(f"{row_name(key)} is stored, but is not what was written")
    return stored[: -row_sums.SUM_BYTES]


def _checked_entries(need: EntryRange, found: list[Any]) -> list[tuple[int, bytes]]:
    queue = need.queue
    for seq, stored in found:
        if not row_sums.entry_is_whole(queue, seq, stored):
            raise Damaged(f"the entry {seq} of queue {queue} is stored, but is not what was written")
    return [(seq, stored[: -row_sums.SUM_BYTES]) for seq, stored in found]


def _checked_forwards(shard: int, found: list[Any]) -> list[tuple[int, bytes]]:
    for k, stored in found:
        if not row_sums.forward_is_whole(shard, k, stored):
            raise Damaged(f"the forward {k} to shard {shard} is stored, but is not what was written")
    return [(k, stored[: -row_sums.SUM_BYTES]) for k, stored in found]
