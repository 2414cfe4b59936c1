"""Reading one segment: only what was written is read, and every end is told apart from damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.engine.filelog.segment import SECTOR, SegmentHead, encode_batch, encode_segment_head, name_of, span_of
from nightmail.engine.filelog.segment_reader import End, SegmentReader, read_head
from nightmail.engine.ports import Damaged, Stored
from tests.engine.filelog.memoryfiles import MemoryFiles

IDENTITY = b"a folder"
SALT = 0x5EED_5A17
SIZE = 8 * SECTOR


def a_segment(*batches: bytes, size: int = SIZE) -> bytes:
    return b"".join((encode_segment_head(SegmentHead(IDENTITY, 1, SALT, size)), *batches)).ljust(size, b"\0")


def reader_of(data: bytes) -> SegmentReader | None:
    file = MemoryFiles({name_of(1): data}).open(name_of(1))
    head = read_head(file, 1, IDENTITY)
    return head and SegmentReader(file, head)


def read_all(data: bytes) -> tuple[list[Stored], End | None]:
    reader = reader_of(data)
    assert reader is not None
    found: list[Stored] = []
    while (batch := reader.next()) is not None:
        found.append(batch.stored)
    return found, reader.end


def test_batches_are_read_in_order() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a", b""])
    two = encode_batch(SALT, SECTOR + len(one), 3, 6, [b"c" * 700])
    assert read_all(a_segment(one, two)) == ([Stored(1, 5, [b"a", b""]), Stored(3, 6, [b"c" * 700])], End.CLEAN)


def test_a_segment_may_be_filled_to_its_last_byte() -> None:
    size = 4 * SECTOR
    record = bytes(range(1, 255)) * 5 + bytes(size - SECTOR - span_of(0) - 254 * 5 - 4)
    assert read_all(a_segment(encode_batch(SALT, SECTOR, 1, 5, [record]), size=size)) == (
        [Stored(1, 5, [record])],
        End.CLEAN,
    )


def test_a_batch_that_does_not_follow_is_damage() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a"])
    gap = encode_batch(SALT, SECTOR + len(one), 3, 6, [b"c"])
    assert read_all(a_segment(one, gap)) == ([Stored(1, 5, [b"a"])], End.DAMAGED)


@pytest.mark.parametrize("record", [b"\x81" * 700, bytes(1700), b""])
def test_one_flipped_bit_is_never_taken_for_a_torn_batch(record: bytes) -> None:
    batch = encode_batch(SALT, SECTOR, 1, 5, [record])
    for bit in range(len(batch) * 8):
        changed = bytearray(batch)
        changed[bit // 8] ^= 1 << bit % 8
        assert read_all(a_segment(bytes(changed))) == ([], End.DAMAGED)


def test_a_write_that_stopped_anywhere_is_torn() -> None:
    batch = encode_batch(SALT, SECTOR, 1, 5, [b"\x81" * 300])
    for written in range(1, len(batch) - 64):
        reader = reader_of(a_segment(batch[:written]))
        assert reader is not None
        assert (reader.next(), reader.end, reader.rest_is_zero()) == (None, End.TORN, False)


def test_a_batch_behind_a_hole_shows_that_the_hole_is_damage() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a"])
    two = encode_batch(SALT, SECTOR + len(one), 2, 5, [b"b"])
    reader = reader_of(a_segment(bytes(len(one)), two))
    assert reader is not None
    assert reader.next() is None
    with pytest.raises(Damaged, match=r"log-00000001.seg is damaged at byte 512"):
        reader.rest_is_zero()


@given(st.binary(max_size=3 * SECTOR))
def test_noise_is_never_read_as_a_batch(noise: bytes) -> None:
    found, _ = read_all(a_segment(noise))
    assert found == []


def test_a_segment_header_that_was_cut_short_is_none() -> None:
    sector = encode_segment_head(SegmentHead(IDENTITY, 1, SALT, SIZE))
    for written in range(SECTOR):
        assert reader_of(sector[:written].ljust(SIZE, b"\0")) is None
        with pytest.raises(Damaged, match="its header is gone"):
            reader_of(sector[:written].ljust(SECTOR, b"\0") + b"batches")


@given(st.binary(max_size=3 * SECTOR))
def test_a_file_of_noise_is_refused(noise: bytes) -> None:
    try:
        assert reader_of(noise) is None
        assert not any(noise[SECTOR - 1 :])
    except Damaged:
        pass


@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 255)), max_size=20))
def test_a_scribbled_segment_yields_only_what_was_written(scribbles: list[tuple[int, int]]) -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a" * 90, b"b"])
    two = encode_batch(SALT, SECTOR + len(one), 3, 6, [b"c" * 700])
    data = bytearray(a_segment(one, two))
    for at, value in scribbles:
        data[at] = value
    written = [Stored(1, 5, [b"a" * 90, b"b"]), Stored(3, 6, [b"c" * 700])]
    try:
        found, _ = read_all(bytes(data))
        assert found == written[: len(found)]
    except Damaged:
        pass
