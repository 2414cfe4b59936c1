"""Zeros where SQLite leaves the past: the unused middle of its b-tree pages.

`secure_delete` overwrites what is deleted where it stands. But when a page is rebuilt while its
tree is balanced, the cells that moved to a neighbour stay behind as rubbish between the pointers
and the contents, and nothing ever deletes those copies. (Measured: about 1 in 1,000 deleted
entries could still be read in the file.)

Knows:   SQLite's page format, as far as the header of a b-tree page.
Touches: only bytes that belong to no cell: whatever part of such a write a power cut lets
         through, the page means the same.
Never:   runs while the write-ahead log holds anything: then the file would not be the newest.
"""

from __future__ import annotations

import struct

import apsw

from .connect import PAGE_BYTES, Place, open_raw

SLICES = 12
"""A whole pass takes this many calls: of one every ten minutes or every hour, well within a day."""
SLICE_PAGES = 1_024
_READ_PAGES = 256
_PAGES_MAX = 1 << 25
"""Beyond, an overflow page may begin like a b-tree page (its first byte is a page number's)."""
_HEADER_BYTES = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
_FIRST_BYTES = frozenset((*_HEADER_BYTES, ord("S")))  # the first page begins with "SQLite format 3"
_POINTER = struct.Struct(">H")


class Scrubber:
    """Goes through the file slice by slice, again and again."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._next = 0

    def scrub_some(self, writer: apsw.Connection) -> int:
        """Clean the next slice, while `writer` is idle; returns how many pages were not clean."""
        file = open_raw(self._place, self._place.path)
        try:
            pages = file.xFileSize() // PAGE_BYTES
            if pages > _PAGES_MAX:
                return 0
            low = self._next if self._next < pages else 0
            self._next = high = min(pages, low + max(SLICE_PAGES, pages // SLICES + 1))
            cleaned = sum(
                _clean(file, first, min(_READ_PAGES, high - first)) for first in range(low, high, _READ_PAGES)
            )
            if cleaned:
                file.xSync(apsw.SQLITE_SYNC_FULL)
                # Its cache still has the rubbish, and would write it back with the page's next change.
                writer.release_memory()
            return cleaned
        finally:
            file.xClose()


def rubbish(page: bytes, header: int = 0) -> tuple[int, int] | None:
    """Where the unused middle of a page begins and ends, if it is a b-tree page and not all zeros."""
    if not (length := _HEADER_BYTES.get(page[header])):
        return None
    pointers = header + length
    low = pointers + 2 * int.from_bytes(page[header + 3 : header + 5], "big")
    high = int.from_bytes(page[header + 5 : header + 7], "big") or 65_536
    if not low <= high <= len(page) or page.count(0, low, high) == high - low:
        return None
    # A page that only looks like one of a b-tree is left alone.
    lowest = min((pointer for (pointer,) in _POINTER.iter_unpack(page[pointers:low])), default=high)
    return (low, high) if lowest >= high else None


def _clean(file: apsw.VFSFile, first: int, count: int) -> int:
    data = file.xRead(count * PAGE_BYTES, first * PAGE_BYTES)
    cleaned = 0
    for start in range(0, len(data), PAGE_BYTES):
        if data[start] not in _FIRST_BYTES:
            continue
        if found := rubbish(data[start : start + PAGE_BYTES], 0 if first + start else 100):
            low, high = found
            file.xWrite(bytes(high - low), first * PAGE_BYTES + start + low)
            cleaned += 1
    return cleaned
