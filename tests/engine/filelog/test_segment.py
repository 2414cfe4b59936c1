"""The byte format: what was encoded is decoded, and nothing else is."""

from __future__ import annotations

import itertools
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.engine.filelog.segment import (
    GRAIN,
    SECTOR,
    SegmentHead,
    batch_is_torn,
    decode_batch_head,
    decode_records,
    decode_segment_head,
    encode_batch,
    encode_segment_head,
    find_batch_head,
    name_of,
    number_of,
    span_of,
)
from nightmail.engine.filelog.walk import End, Walk, read_head
from nightmail.engine.ports import Damaged, Stored, TooNew
from tests.engine.filelog.memoryfiles import MemoryFiles

IDENTITY = b"a folder"
SALT = 0x5EED_5A17
SIZE = 8 * SECTOR


def a_segment(*batches: bytes, size: int = SIZE) -> bytes:
    return b"".join((encode_segment_head(SegmentHead(IDENTITY, 1, SALT, size)), *batches)).ljust(size, b"\0")


def walk_of(data: bytes) -> Walk | None:
    file = MemoryFiles({name_of(1): data}).open(name_of(1))
    head = read_head(file, 1, IDENTITY)
    return head and Walk(file, head)


def walked(data: bytes) -> tuple[list[Stored], End | None]:
    walk = walk_of(data)
    assert walk is not None
    found: list[Stored] = []
    while (batch := walk.next()) is not None:
        found.append(batch.stored)
    return found, walk.end


def test_a_name_is_read_back_and_others_are_left_alone() -> None:
    assert number_of(name_of(17)) == 17
    assert [number_of(name) for name in ("log-1.seg", "rows.db", "log-00000001.seg~", "log-٠٠٠٠٠٠٠١.seg")] == [None] * 4


@given(st.lists(st.binary(max_size=1500), max_size=5), st.integers(0, 7))
def test_a_batch_is_read_back_word_for_word(records: list[bytes], grains: int) -> None:
    position = SECTOR + grains * GRAIN
    batch = encode_batch(SALT, position, 7, 1234, records)
    head = decode_batch_head(batch[:GRAIN], SALT)
    assert head is not None
    assert (head.first, head.at, head.records, head.span) == (7, 1234, len(records), len(batch))
    assert head.span % GRAIN == 0
    assert decode_records(head, batch, SALT) == records


def test_batches_are_walked_in_order() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a", b""])
    two = encode_batch(SALT, SECTOR + len(one), 3, 6, [b"c" * 700])
    assert walked(a_segment(one, two)) == ([Stored(1, 5, [b"a", b""]), Stored(3, 6, [b"c" * 700])], End.CLEAN)


def test_a_segment_may_be_filled_to_its_last_byte() -> None:
    size = 4 * SECTOR
    record = bytes(range(1, 255)) * 5 + bytes(size - SECTOR - span_of(0) - 254 * 5 - 4)
    assert walked(a_segment(encode_batch(SALT, SECTOR, 1, 5, [record]), size=size)) == (
        [Stored(1, 5, [record])],
        End.CLEAN,
    )


def test_a_batch_of_another_segment_is_none_of_ours() -> None:
    batch = encode_batch(SALT + 1, SECTOR, 1, 5, [b"a"])
    assert decode_batch_head(batch[:GRAIN], SALT) is None
    assert find_batch_head(bytes(GRAIN) + batch, SALT) is None
    assert find_batch_head(bytes(GRAIN) + batch, SALT + 1) == GRAIN


def test_a_batch_that_does_not_follow_is_damage() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a"])
    gap = encode_batch(SALT, SECTOR + len(one), 3, 6, [b"c"])
    assert walked(a_segment(one, gap)) == ([Stored(1, 5, [b"a"])], End.DAMAGED)


@pytest.mark.parametrize("record", [b"\x81" * 1700, bytes(1700), b"x" * 500 + bytes(600) + b"y" * 600])
@pytest.mark.parametrize("grains", range(8))
def test_whatever_sectors_of_a_batch_are_missing_it_is_torn_or_never_was(record: bytes, grains: int) -> None:
    position = SECTOR + grains * GRAIN
    batch = encode_batch(SALT, position, 1, 5, [record])
    whole = bytes(position) + batch + bytes(-(position + len(batch)) % SECTOR)
    sectors = [whole[at : at + SECTOR] for at in range(SECTOR, len(whole), SECTOR)]
    for kept in itertools.product((False, True), repeat=len(sectors)):
        data = bytes(SECTOR) + b"".join(s if keep else bytes(SECTOR) for s, keep in zip(sectors, kept, strict=True))
        found = data[position : position + len(batch)]
        head = decode_batch_head(found[:GRAIN], SALT)
        if not kept[0]:
            assert head is None
            assert not any(found[:GRAIN])
        elif data == whole:
            assert head is not None
            assert decode_records(head, found, SALT) == [record]
        else:
            assert head is not None
            assert decode_records(head, found, SALT) is None
            assert batch_is_torn(head, position, found)


@pytest.mark.parametrize("record", [b"\x81" * 700, bytes(1700), b""])
def test_one_flipped_bit_is_never_taken_for_a_torn_batch(record: bytes) -> None:
    batch = encode_batch(SALT, SECTOR, 1, 5, [record])
    for bit in range(len(batch) * 8):
        changed = bytearray(batch)
        changed[bit // 8] ^= 1 << bit % 8
        assert walked(a_segment(bytes(changed))) == ([], End.DAMAGED)


def test_a_write_that_stopped_anywhere_is_torn() -> None:
    batch = encode_batch(SALT, SECTOR, 1, 5, [b"\x81" * 300])
    for written in range(1, len(batch) - 64):
        walk = walk_of(a_segment(batch[:written]))
        assert walk is not None
        assert (walk.next(), walk.end, walk.rest_is_zero()) == (None, End.TORN, False)


def test_a_batch_behind_a_hole_shows_that_the_hole_is_damage() -> None:
    one = encode_batch(SALT, SECTOR, 1, 5, [b"a"])
    two = encode_batch(SALT, SECTOR + len(one), 2, 5, [b"b"])
    walk = walk_of(a_segment(bytes(len(one)), two))
    assert walk is not None
    assert walk.next() is None
    with pytest.raises(Damaged, match=r"log-00000001.seg is damaged at byte 512"):
        walk.rest_is_zero()


def test_a_segment_header_says_whose_it_is() -> None:
    sector = encode_segment_head(SegmentHead(IDENTITY, 3, SALT, SIZE))
    assert decode_segment_head(sector, 3, IDENTITY, SIZE) == SegmentHead(IDENTITY, 3, SALT, SIZE)
    assert decode_segment_head(bytes(SECTOR), 3, IDENTITY, SIZE) is None
    for number, identity, size, says in (
        (4, IDENTITY, SIZE, "misnamed"),
        (3, b"another!", SIZE, "foreign"),
        (3, IDENTITY, SIZE - 1, "truncated"),
        (3, IDENTITY, SIZE + 1, "too long"),
    ):
        with pytest.raises(Damaged, match=says):
            decode_segment_head(sector, number, identity, size)


def test_a_segment_of_a_newer_format_is_left_alone() -> None:
    sector = bytearray(encode_segment_head(SegmentHead(IDENTITY, 3, SALT, SIZE)))
    sector[11] = 2
    with pytest.raises(Damaged):
        decode_segment_head(bytes(sector), 3, IDENTITY, SIZE)
    sector[-5:-1] = struct.pack(">I", zlib.crc32(sector[:-5]))
    with pytest.raises(TooNew, match="format 2"):
        decode_segment_head(bytes(sector), 3, IDENTITY, SIZE)


@given(st.binary(max_size=3 * SECTOR))
def test_noise_is_never_read_as_a_batch(noise: bytes) -> None:
    found, _ = walked(a_segment(noise))
    assert found == []


def test_a_segment_header_that_was_cut_short_is_none() -> None:
    sector = encode_segment_head(SegmentHead(IDENTITY, 1, SALT, SIZE))
    for written in range(SECTOR):
        assert walk_of(sector[:written].ljust(SIZE, b"\0")) is None
        with pytest.raises(Damaged, match="its header is gone"):
            walk_of(sector[:written].ljust(SECTOR, b"\0") + b"batches")


@given(st.binary(max_size=3 * SECTOR))
def test_a_file_of_noise_is_refused(noise: bytes) -> None:
    try:
        assert walk_of(noise) is None
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
        found, _ = walked(bytes(data))
        assert found == written[: len(found)]
    except Damaged:
        pass
