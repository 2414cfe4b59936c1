from __future__ import annotations

from nightmail.engine.sqlite.erasure import stale_bytes

LEAF = 0x0A


def a_page(kind: int, pointers: list[int], start: int, rest: bytes = b"") -> bytes:
    """A b-tree page as far as its header and pointers, then `rest`."""
    head = bytes([kind, 0, 0]) + len(pointers).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0"
    head += bytes(4) if kind in (0x02, 0x05) else b""
    body = head + b"".join(pointer.to_bytes(2, "big") for pointer in pointers) + rest
    return body + bytes(4_096 - len(body))


def test_what_lies_between_pointers_and_cells_is_rubbish() -> None:
    assert stale_bytes(a_page(LEAF, [4_000, 3_900], 3_900, b"left behind")) == (12, 3_900)
    assert stale_bytes(a_page(0x02, [4_000], 4_000, b"left behind")) == (14, 4_000)


def test_a_clean_page_has_none() -> None:
    assert stale_bytes(a_page(LEAF, [4_000], 3_900)) is None
    assert stale_bytes(a_page(LEAF, [], 0)) is None


def test_the_first_page_has_its_header_behind_the_files() -> None:
    page = b"SQLite format 3\0".ljust(100, b"\1") + a_page(LEAF, [], 4_096, b"left behind")[:3_996]
    assert stale_bytes(page, 100) == (108, 4_096)


def test_what_is_no_page_of_a_tree_or_makes_no_sense_is_left_alone() -> None:
    assert stale_bytes(a_page(0, [4_000], 4_000, b"overflow")) is None
    assert stale_bytes(a_page(LEAF, [4_000, 100], 4_000, b"a cell within")) is None
    assert stale_bytes(a_page(LEAF, [4_000], 5_000, b"beyond the end")) is None
    assert stale_bytes(a_page(LEAF, [4_000], 9, b"within the pointers")) is None
