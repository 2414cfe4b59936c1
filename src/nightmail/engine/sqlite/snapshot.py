"""One view of a database, also of one that a server is writing to: to check every row, and to copy all of it.

Knows:   that a server cannot restart the write-ahead log while this view is open.
Touches: nothing in a folder that nobody serves; beside a server, SQLite's own index of the write-ahead log.
Never:   makes the server wait: it writes behind the view.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

import apsw

from nightmail.core.state import row_name
from nightmail.engine.ports import Damaged
from nightmail.model.rows import Kept, RowKey

from . import connect, row_sums, schema, statements
from .database_file import DatabaseFile
from .inspection import Inspected, check_sums, open_unchanged, size_of
from .page_sums import make_sums, sums_of_file, write_sums

COPY_PAGES = 1_024
Counted = Callable[[int], None]
"""Told how many pages or rows were looked at so far."""


class Snapshot:
    """The rows as of one checkpoint. `served`: another process has the database open."""

    def __init__(self, database: DatabaseFile, names: Collection[str], *, served: bool) -> None:
        self._database, self._names = database, names
        self.db = self._open(served)
        try:
            schema.check(self.db, database.path)
            frames = self._frames(self.db) if not served else 0
            self.db.execute("BEGIN")
            self.found = Inspected(schema.read_identity(self.db), schema.read_pointer(self.db))
            if schema.number(self.db, "user_version") != len(schema.STEPS):
                raise Damaged(f"{database.path} was last served by another version: start the server on it once")
            if served:
                # Asked by another connection: this one is inside a transaction. Later frames do no harm.
                with closing(connect.open_reader(database, 64)) as other:
                    other.execute("SELECT 1 FROM meta").fetchall()
                    frames = self._frames(other)
            self._wal_frames = frames
        except BaseException:
            self.db.close(True)
            raise

    def close(self) -> None:
        self.db.close(True)

    @property
    def pages(self) -> int:
        return schema.number(self.db, "page_count")

    def check_pages(self, on_page: Counted) -> None:
        """Raises Damaged if a page is not what was written."""
        check_sums(self._database, self._names, self.found, self._wal_frames, on_page)

    def check_rows(self, on_row: Counted) -> int:
        """Raises Damaged if a row, an entry, a forward or a block of the delivery log is not what was written."""
        seen = 0
        for name in self._checked():
            seen += 1
            if name:
                raise Damaged(f"{name} is stored, but is not what was written")
            if seen % 1_000 == 0:
                on_row(seen)
        return seen

    def _checked(self) -> Any:
        """For each row None, or what it is called if it is damaged."""
        for key, version, value in self._stored_rows():
            yield None if row_sums.row_is_whole(key, version, value) else row_name(key)
        query = self.db.execute
        for queue, seq, body in query("SELECT queue, seq, body FROM entry"):
            yield None if row_sums.entry_is_whole(queue, seq, body) else f"the entry {seq} of queue {queue}"
        for shard, k, record in query("SELECT shard, k, record FROM forward"):
            yield None if row_sums.forward_is_whole(shard, k, record) else f"the forward {k} to shard {shard}"
        for upto, at, devices, lines in query("SELECT upto, at, devices, lines FROM note"):
            whole = row_sums.note_is_whole(upto, at, devices, lines)
            yield None if whole else f"the delivery log of checkpoint {upto}"
        for upto, nth, lines in query("SELECT upto, nth, lines FROM piece"):
            yield None if row_sums.piece_is_whole(upto, nth, lines) else f"the delivery log of checkpoint {upto}"

    def _stored_rows(self) -> Iterator[tuple[RowKey, int, bytes]]:
        """With their checksums."""
        query: Any = self.db.execute
        for kind, table in statements.NUMBERED.items():
            for a, version, value in query(f"SELECT a, version, value FROM {table}"):  # noqa: S608 (our own names)
                yield RowKey(kind, a, 0), version, value
        for a, b, version, value in query("SELECT a, b, version, value FROM stream"):
            yield RowKey(Kept.STREAM, a, b), version, value
        for kind, a, b, version, value in query("SELECT kind, a, b, version, value FROM row"):
            yield RowKey(Kept(kind), a, b), version, value

    def every_row(self) -> Iterator[tuple[RowKey, int, bytes]]:
        """Key, version and bytes, of rows that `check_rows` found to be whole."""
        for key, version, value in self._stored_rows():
            yield key, version, value[: -row_sums.SUM_BYTES]

    def row(self, key: RowKey) -> bytes | None:
        found: Any = self.db.execute(*statements.read_row(key)).get
        return found[1][: -row_sums.SUM_BYTES] if found else None

    def every_entry(self) -> Iterator[tuple[int, int, bytes]]:
        """Queue, number and bytes, likewise."""
        query: Any = self.db.execute
        for queue, seq, body in query("SELECT queue, seq, body FROM entry"):
            yield queue, seq, body[: -row_sums.SUM_BYTES]

    def copy_to(self, path: str, on_page: Counted) -> None:
        """Write the whole view as a new database, with its checksums, durable."""
        database = DatabaseFile(path)
        with closing(apsw.Connection(path)) as copy:
            with copy.backup("main", self.db, "main") as backup:
                while not backup.done:
                    backup.step(COPY_PAGES)
                    on_page(backup.page_count - backup.remaining)
            copy.execute("PRAGMA journal_mode = WAL").fetchall()
        for suffix in ("-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
        sums = sums_of_file(database)._replace(identity=self.found.identity, pointer=self.found.pointer)
        make_sums(database)
        write_sums(database, sums)
        write_sums(database, sums._replace(generation=1))

    def _open(self, served: bool) -> apsw.Connection:
        if served:
            return connect.open_reader(self._database, 2_048)
        return open_unchanged(self._database, has_wal=bool(size_of(self._database, "-wal", self._names)))

    def _frames(self, db: apsw.Connection) -> int:
        if not size_of(self._database, "-wal", self._names):
            return 0
        return max(0, db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
