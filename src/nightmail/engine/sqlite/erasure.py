"""Erases what SQLite leaves of deleted rows: the unused middle of its b-tree pages.

`secure_delete` overwrites a deleted cell in its place. But when a page is rebuilt while its tree is
balanced, the cells that moved to a neighbour page stay behind as stale bytes between the pointers
and the contents, and nothing ever deletes those copies. (Measured: about 1 in 1,000 deleted
entries could still be read in the file.)

Knows:   which bytes of a page mean nothing.
Touches: only bytes that belong to no cell: if a power cut lets only a part of such a write
         through, the page still means the same.
Never:   runs while the write-ahead log holds anything: then the file would not be up to date.
"""

from __future__ import annotations

import struct

import apsw

from .database_file import DatabaseFile, open_raw
from .page_sums import Sums, check_page, read_sums
from .pages import HEADER_BYTES, PAGE_BYTES, unused_middle

SLICES = 12
"""Calls for one pass over the file. With a call every ten minutes to an hour, a pass takes less than a day."""
SLICE_PAGES = 1_024
_READ_PAGES = 256
_PAGES_MAX = 1 << 25
"""In a larger file, an overflow page may begin like a b-tree page (its first byte is part of a page number)."""
_FIRST_BYTES = frozenset((*HEADER_BYTES, ord("S")))  # the first page begins with "SQLite format 3"
_POINTER = struct.Struct(">H")


class Eraser:
    """Goes through the file slice by slice, and then begins again. Each page is compared with its checksum, too."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database
        self._next = 0

    def erase_some(self, writer: apsw.Connection) -> int:
        """Erase in the next slice, while `writer` is idle; returns how many pages had stale bytes.

        Raises Damaged if a page is not what was written.
        """
        sums = read_sums(self._database)
        file = open_raw(self._database, self._database.path)
        try:
            pages = file.xFileSize() // PAGE_BYTES
            if pages > _PAGES_MAX:
                return 0
            low = self._next if self._next < pages else 0
            self._next = high = min(pages, low + max(SLICE_PAGES, pages // SLICES + 1))
            cleaned = sum(
                self._erase(file, sums, first, min(_READ_PAGES, high - first))
                for first in range(low, high, _READ_PAGES)
            )
            if cleaned:
                file.xSync(apsw.SQLITE_SYNC_FULL)
                # Its cache still has the stale bytes, and would write them back with the page's next change.
                writer.release_memory()
            return cleaned
        finally:
            file.xClose()

    def _erase(self, file: apsw.VFSFile, sums: Sums | None, first: int, count: int) -> int:
        data = file.xRead(count * PAGE_BYTES, first * PAGE_BYTES)
        cleaned = 0
        for start in range(0, len(data), PAGE_BYTES):
            page = data[start : start + PAGE_BYTES]
            if sums:
                check_page(self._database, sums, first + start // PAGE_BYTES + 1, page)
            if page[0] not in _FIRST_BYTES:
                continue
            if found := stale_bytes(page, 0 if first + start else 100):
                low, high = found
                file.xWrite(bytes(high - low), first * PAGE_BYTES + start + low)
                cleaned += 1
        return cleaned


def stale_bytes(page: bytes, header: int = 0) -> tuple[int, int] | None:
    """Where the unused middle of a b-tree page begins and ends; None if it is clean or no such page."""
    low, high = unused_middle(page, header)
    if not low or page.count(0, low, high) == high - low:
        return None
    pointers = header + HEADER_BYTES[page[header]]
    # A page that only looks like a b-tree page is left alone.
    lowest = min((pointer for (pointer,) in _POINTER.iter_unpack(page[pointers:low])), default=high)
    return (low, high) if lowest >= high else None
