"""One checksum for every page of the database file, in two files beside it that take turns.

The database file changes only when the write-ahead log is moved into it, and only we move it. So before each move,
the checksums of the pages in the write-ahead log are written and synced. At any instant, also after a crash:

    a page that the write-ahead log holds    is right there, whatever is in the database file
    any other page                           has the checksum that is written down

A page that is lost or of another time is noticed, and with it every row that it held or led to.

Knows:   the format of these files, of a write-ahead log's frames, and which bytes of a page mean nothing.
Touches: the two files; the one that is older is written.
Never:   counts the unused middle of a page: `erasure.py` clears it in place, and a power cut may stop that halfway.
"""

from __future__ import annotations

import array
import struct
import sys
import zlib
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from nightmail.engine.ports import Damaged

from .database_file import COPY_BYTES, DatabaseFile, open_raw
from .pages import PAGE_BYTES, unused_middle

SUFFIXES = ("-sums0", "-sums1")
READ_PAGES = 256
NO_IDENTITY = bytes(8)
"""Of checksums that were made before the database had an identity."""
RESIDUE = 0x2144DF1C
"""The CRC-32 of anything that is followed by its own CRC-32."""

_HEAD = struct.Struct("<8sQ8sQQ")
_MAGIC = b"NIGHTSM\x01"
_WAL_HEAD = 32
_FRAME = struct.Struct(">II")
_FRAME_BYTES = 24 + PAGE_BYTES
_ZEROS = bytes(PAGE_BYTES)
_ZERO_SUM = zlib.crc32(_ZEROS)


class Sums(NamedTuple):
    """The checksums as of one move of the write-ahead log."""

    generation: int
    identity: bytes
    pointer: int
    """The checkpoint that the database file held after that move."""
    pages: array.array[int]


def page_sum(page: bytes, header: int = 0) -> int:
    """`header`: where a page's own header begins; 100 in the first page."""
    low, high = unused_middle(page, header)
    if low == high or page.count(0, low, high) == high - low:
        return zlib.crc32(page)
    return zlib.crc32(page[high:], zlib.crc32(_ZEROS[: high - low], zlib.crc32(page[:low])))


# --- the two files ----------------------------------------------------------------------------


def read_sums(database: DatabaseFile, names: Collection[str] | None = None) -> Sums | None:
    """The newest checksums that were written whole. None if there are none.

    `names`: the files in the folder, if they are known; a file that is not among them is not opened.
    """
    found = [sums for suffix in SUFFIXES if (sums := _read(database, suffix, names)) is not None]
    return max(found, key=lambda sums: sums.generation, default=None)


def make_sums(database: DatabaseFile) -> None:
    """Make the two files if they are missing, empty. Their names are durable when their folder is synced."""
    for suffix in SUFFIXES:
        with raw(database, suffix, create=True):
            pass


def refresh_sums(database: DatabaseFile) -> None:
    """Make the two files if they are missing, and the newest checksums durable.

    They may be only in memory, after a process that died before their sync. The next write goes over the older ones,
    and those are then all that a power cut would leave.
    """
    make_sums(database)
    if sums := read_sums(database):
        write_sums(database, sums)


def write_sums(database: DatabaseFile, sums: Sums) -> None:
    """Durable when it returns. Writes over the older ones."""
    pages = sums.pages
    if sys.byteorder == "big":
        pages = pages[:]
        pages.byteswap()
    data = _HEAD.pack(_MAGIC, sums.generation, sums.identity, sums.pointer, len(pages)) + pages.tobytes()
    data += zlib.crc32(data).to_bytes(4, "little")
    with raw(database, SUFFIXES[sums.generation % 2]) as file:
        for offset in range(0, len(data), COPY_BYTES):
            file.xWrite(data[offset : offset + COPY_BYTES], offset)
        file.xTruncate(len(data))
        file.xSync(apsw.SQLITE_SYNC_FULL)


def _read(database: DatabaseFile, suffix: str, names: Collection[str] | None) -> Sums | None:
    if names is not None and (database.path + suffix).rpartition("/")[2] not in names:
        return None
    try:
        with raw(database, suffix) as file:
            size = file.xFileSize()
            data = b"".join(file.xRead(min(COPY_BYTES, size - offset), offset) for offset in range(0, size, COPY_BYTES))
    except apsw.CantOpenError:
        if names is not None:
            raise  # it is there, and the next write to it would fail
        return None
    if len(data) < _HEAD.size + 4 or zlib.crc32(data) != RESIDUE or not data.startswith(_MAGIC):
        return None  # a write that was interrupted; the other file counts
    _, generation, identity, pointer, count = _HEAD.unpack_from(data)
    pages = array.array("I", data[_HEAD.size : -4])
    if sys.byteorder == "big":
        pages.byteswap()
    return Sums(generation, identity, pointer, pages) if len(pages) == count else None


@contextmanager
def raw(database: DatabaseFile, suffix: str, *, create: bool = False) -> Generator[apsw.VFSFile]:
    """A file of the database, byte by byte."""
    file = open_raw(database, database.path + suffix, create=create)
    try:
        yield file
    finally:
        file.xClose()


# --- from the files of the database -----------------------------------------------------------


def sums_of_file(database: DatabaseFile) -> Sums:
    """The checksums of the database file as it is, while the write-ahead log is empty."""
    pages = array.array("I")
    for number, page in read_pages(database):
        pages.append(page_sum(page, 0 if number > 1 else 100))
    return Sums(0, NO_IDENTITY, 0, pages)


def with_frames(database: DatabaseFile, sums: Sums, frames: int, identity: bytes, pointer: int) -> Sums:
    """The checksums after the first `frames` frames of the write-ahead log are moved."""
    pages, newest, count = sums.pages[:], dict[int, int](), len(sums.pages)
    with raw(database, "-wal") as file:
        for number, total, at in _frames(file, frames):
            newest[number] = at
            count = total or count
        del pages[count:]
        # A page that was taken and given back within one transaction is in no frame, and zero.
        pages.extend([_ZERO_SUM] * (count - len(pages)))
        for number, at in sorted(newest.items()):
            if number <= count:
                pages[number - 1] = page_sum(file.xRead(PAGE_BYTES, at), 0 if number > 1 else 100)
    return Sums(sums.generation + 1, identity, pointer, pages)


def pages_in_wal(database: DatabaseFile, frames: int) -> set[int]:
    if not frames:
        return set()
    with raw(database, "-wal") as file:
        return {number for number, _, _ in _frames(file, frames)}


def _frames(file: apsw.VFSFile, frames: int) -> Iterator[tuple[int, int, int]]:
    """(page, pages of the database if this frame ends a transaction or else 0, where the page begins)."""
    for nth in range(frames):
        at = _WAL_HEAD + nth * _FRAME_BYTES
        number, total = _FRAME.unpack(file.xRead(_FRAME.size, at))
        yield number, total, at + _FRAME_BYTES - PAGE_BYTES


def read_pages(database: DatabaseFile, first: int = 1, count: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(number, page) of the database file; a last page may be cut off."""
    with raw(database, "") as file:
        size = file.xFileSize()
        last = -(-size // PAGE_BYTES)
        if count is not None:
            last = min(last, first + count - 1)
        for start in range(first, last + 1, READ_PAGES):
            offset = (start - 1) * PAGE_BYTES
            data = file.xRead(min(READ_PAGES * PAGE_BYTES, size - offset, (last - start + 1) * PAGE_BYTES), offset)
            for nth, at in enumerate(range(0, len(data), PAGE_BYTES)):
                yield start + nth, data[at : at + PAGE_BYTES]


def check_pages(
    database: DatabaseFile, sums: Sums, skip: Collection[int] = (), on_page: Callable[[int], None] | None = None
) -> None:
    """Raises Damaged if a page that is not in `skip` is not what was written."""
    seen = 0
    for number, page in read_pages(database):
        seen = number
        if on_page:
            on_page(number)
        check_page(database, sums, number, page, skip)
    for number in range(seen + 1, len(sums.pages) + 1):
        if number not in skip:
            raise Damaged(f"{database.path} is truncated: page {number} of {len(sums.pages)} is missing")


def check_page(database: DatabaseFile, sums: Sums, number: int, page: bytes, skip: Collection[int] = ()) -> None:
    if number in skip:
        return
    if number > len(sums.pages):
        raise Damaged(f"{database.path} is too long: it has {len(sums.pages)} pages, and there is another one")
    if len(page) != PAGE_BYTES or page_sum(page, 0 if number > 1 else 100) != sums.pages[number - 1]:
        raise Damaged(
            f"{database.path} is damaged at byte {(number - 1) * PAGE_BYTES}: page {number} is not as written"
        )
