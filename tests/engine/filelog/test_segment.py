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
)
from nightmail.engine.ports import Damaged, TooNew

IDENTITY = b"a folder"
SALT = 0x5EED_5A17
SIZE = 8 * SECTOR


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


def test_a_batch_of_another_segment_is_none_of_ours() -> None:
    batch = encode_batch(SALT + 1, SECTOR, 1, 5, [b"a"])
    assert decode_batch_head(batch[:GRAIN], SALT) is None
    assert find_batch_head(bytes(GRAIN) + batch, SALT) is None
    assert find_batch_head(bytes(GRAIN) + batch, SALT + 1) == GRAIN


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
