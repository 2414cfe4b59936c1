"""SQLite's page format, as far as the header of a b-tree page.

Touches: nothing.
"""

from __future__ import annotations

PAGE_BYTES = 4_096
HEADER_BYTES = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
"""The first byte of a b-tree page, and how long its header is."""


def unused_middle(page: bytes, header: int = 0) -> tuple[int, int]:
    """Where the bytes between the pointers and the cells of a b-tree page begin and end; (0, 0) for other pages."""
    if header >= len(page) or not (length := HEADER_BYTES.get(page[header])):
        return 0, 0
    low = header + length + 2 * int.from_bytes(page[header + 3 : header + 5], "big")
    high = int.from_bytes(page[header + 5 : header + 7], "big") or 65_536
    return (low, high) if low <= high <= len(page) else (0, 0)
