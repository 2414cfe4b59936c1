# pyright: reportPrivateUsage=false
"""Bugs in the segment files and in the database: what a disk may forget, and what may be believed of it."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Any

from nightmail.engine.filelog import recovery, replay, segment
from nightmail.engine.filelog.files import File, Files
from nightmail.engine.filelog.log import FileLog
from nightmail.engine.filelog.segment_reader import SegmentReader, read_head
from nightmail.engine.ports import Stored
from nightmail.engine.sqlite import connect, page_sums, statements

from .tools import Bug, edit, edit_method, swap

LOG = ("tests/engine/filelog", "tests/conformance")
ROWS = ("tests/engine/sqlite", "tests/conformance")


def _sync_later(file: File, execute: Callable[[Callable[[], None]], None]) -> None:
    def sync() -> None:
        with suppress(OSError):
            file.sync()

    execute(sync)


def _sync_twice(file: File) -> None:
    try:
        file.sync()
    except OSError:
        file.sync()


def _whole_segments() -> AbstractContextManager[None]:
    """A segment is read to its end, also where a later one says that it goes on before that."""

    def read(files: Files, identity: bytes, used: replay.UsedSegment, limit: int) -> Iterator[Stored]:
        with closing(replay.open_segment(files, used.number)) as file:
            head = read_head(file, used.number, identity)
            assert head is not None
            reader = SegmentReader(file, head, expected=used.start)
            while (batch := reader.next()) is not None:
                yield batch.stored

    return swap(replay._read, read)


def _unsynced() -> AbstractContextManager[None]:
    ask: Callable[..., None] = connect._set

    def lazy(db: object, database: object, pragma: str, value: object, want: object) -> None:
        value, want = ("OFF", 0) if pragma == "synchronous" else (value, want)
        ask(db, database, pragma, value, want)

    return swap(ask, lazy)


def _in_pieces() -> AbstractContextManager[None]:
    right: Callable[..., Any] = connect.transaction
    return swap(right, nullcontext)


BUGS = (
    Bug("answered before the sync",
        edit_method(FileLog, "_write", "here.file.sync()", "_sync_later(here.file, self._execute)",
                    _sync_later=_sync_later), ("node",), LOG, seconds=20),
    Bug("a failed sync is tried again, and believed",
        edit_method(FileLog, "_write", "here.file.sync()", "_sync_twice(here.file)", _sync_twice=_sync_twice),
        ("powercuts", "node"), LOG),
    Bug("what a failed append left is replayed", _whole_segments, ("node", "powercuts"), LOG, seconds=16),
    Bug("a torn batch is accepted",
        edit(segment.decode_records, " or zlib.crc32(rest, salt) != head.crc", ""), ("powercuts", "node"), LOG),
    Bug("a log goes on over a torn batch",
        edit(recovery._judge_end, "reader.position if untouched else None", "reader.position"),
        ("powercuts", "node"), LOG),
    Bug("the last batch is believed without being written again",
        edit(recovery._settle, "tail.file.write(verdict.final.position, verdict.final.raw)", "pass"),
        ("powercuts", "node"), LOG),
    Bug("SQLite does not sync", _unsynced, ("powercuts", "node"), ROWS),
    Bug("a checkpoint is not one transaction", _in_pieces, ("powercuts", "node"), ROWS),
    Bug("the write-ahead log is believed after a failed sync",
        lambda: swap(connect.refresh_wal, lambda _database: None), ("powercuts", "node"), ROWS),
    Bug("the checksums of pages are not synced before the pages are moved",
        edit(page_sums.write_sums, "file.xSync(apsw.SQLITE_SYNC_FULL)", "pass"), ("powercuts", "node"), ROWS),
    Bug("a page is moved without its checksum",
        edit(connect.restart_wal, "_sum_wal(database, db)", "pass"), ("powercuts", "node"), ROWS),
    Bug("bytes that mean nothing count for a page's checksum",
        edit(page_sums.page_sum, "unused_middle(page, header)", "(0, 0)"), ("powercuts", "node"), ROWS),
    Bug("of the delivery log's pieces the last is not stored",
        edit(statements.write, "enumerate(others, 1)", "enumerate(others[:-1], 1)"), ("powercuts",), ROWS),
    Bug("a block of the delivery log is dropped before its time",
        edit(statements.drop_notes, "(before,)", "(before + 1,)"), ("powercuts",), ROWS),
)  # fmt: skip
