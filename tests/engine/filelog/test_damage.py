"""Damage is told from a torn end: it is refused in words, and nothing is lost by it."""

from __future__ import annotations

import itertools
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.engine.filelog.segment import SECTOR, name_of
from nightmail.engine.ports import Damaged, TooNew
from tests.engine.filelog.memoryfiles import MemoryFiles, nothing
from tests.engine.filelog.rig import (
    SEGMENT,
    Steps,
    append,
    found,
    heal,
    opened,
)


def three_segments() -> dict[str, bytes]:
    files = MemoryFiles()
    log = opened(files)
    for n in range(5):
        append(log, b"%d" % n * 1500)
    return dict(files.durable)


def refused(durable: dict[str, bytes], after: int = 0) -> str:
    """Why this log is refused, by opening or replaying it. Nothing may have been changed by opening."""
    files = MemoryFiles(durable)
    try:
        log = opened(files, after=after)
    except Damaged as error:
        assert files.changes == 0
        assert files.open_files == []
        return str(error)
    with pytest.raises(Damaged) as caught:
        found(log, after)
    return str(caught.value)


def test_a_missing_segment_is_noticed_wherever_it_was() -> None:
    whole = three_segments()
    assert sorted(whole) == [name_of(n) for n in (1, 2, 3, 4)]
    for n in (1, 2, 3):
        message = refused({name: data for name, data in whole.items() if name != name_of(n)})
        assert name_of(n) in message if n > 1 else "offsets from 1 to 2 are missing" in message
    assert "the log ends at offset 0" in refused({}, after=5)
    assert "the log ends at offset 2" in refused({name_of(1): whole[name_of(1)]}, after=3)
    assert "log-00000003.seg is missing" in refused({name_of(4): whole[name_of(4)]})


def test_a_truncated_segment_is_refused() -> None:
    whole = three_segments()
    for n, size in itertools.product((1, 2, 3), (0, 100, SECTOR, SEGMENT - 1)):
        assert name_of(n) in refused({**whole, name_of(n): whole[name_of(n)][:size]})


def test_a_segment_of_another_folder_is_refused() -> None:
    files = MemoryFiles()
    append(opened(files, identity=b"another!"), b"theirs")
    for n in (1, 2):
        mine = three_segments()
        assert "foreign" in refused({**mine, name_of(n): files.durable[name_of(n)]})
    with pytest.raises(Damaged, match="foreign"):
        opened(files)


def test_a_newer_log_is_refused_and_left_alone() -> None:
    whole = three_segments()
    data = bytearray(whole[name_of(3)])
    data[11] = 2
    data[SECTOR - 5 : SECTOR - 1] = struct.pack(">I", zlib.crc32(data[: SECTOR - 5]))
    files = MemoryFiles({**whole, name_of(3): bytes(data)})
    with pytest.raises(TooNew, match=r"log-00000003\.seg has format 2"):
        opened(files)
    assert files.changes == 0


def test_a_refusal_names_the_file_the_byte_and_the_offsets() -> None:
    whole = three_segments()
    data = bytearray(whole[name_of(2)])
    data[700] ^= 1
    assert refused({**whole, name_of(2): bytes(data)}) == (
        "log-00000001.seg is damaged at byte 3712: offsets from 3 to 4 are unreadable"
    )


def test_a_lost_sector_in_the_middle_is_damage_and_not_an_end() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(4):
        append(log, b"%d" % n * 600)
    data = files.durable[name_of(1)]
    for sector in range(1, 5):
        hole = data[: sector * SECTOR] + bytes(SECTOR) + data[(sector + 1) * SECTOR :]
        assert "log-00000001.seg is damaged at byte" in refused({**files.durable, name_of(1): hole})


def test_a_segment_without_its_header_is_refused() -> None:
    whole = three_segments()
    for n in (1, 2, 3):
        assert name_of(n) in refused({**whole, name_of(n): bytes(SECTOR) + whole[name_of(n)][SECTOR:]})
        assert name_of(n) in refused({**whole, name_of(n): bytes(SEGMENT)})


def test_every_flipped_bit_is_refused_or_changes_nothing() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a" * 700)
    files.syncs_fail = True
    append(log, b"void" * 20)
    heal(files)
    append(log, b"b" * 30, bytes(1100))
    append(log, b"c")
    whole, truth = dict(files.durable), [b"a" * 700, b"b" * 30, bytes(1100), b"c"]
    for name, good in whole.items():
        ends = len(good.rstrip(b"\0")) + 3 * 64
        for bit in range(ends * 8):
            data = bytearray(good)
            data[bit // 8] ^= 1 << bit % 8
            files = MemoryFiles({**whole, name: bytes(data)})
            try:
                log = opened(files)
                assert found(log) == truth
            except Damaged:
                continue
            assert append(log, b"d") == 5
            assert found(opened(files.after_power_cut())) == [*truth, b"d"]


@given(st.dictionaries(st.sampled_from([name_of(n) for n in (1, 2, 3)]), st.binary(max_size=2000)))
def test_a_folder_of_noise_is_refused_or_empty(noise: dict[str, bytes]) -> None:
    try:
        assert found(opened(MemoryFiles(noise))) == []
        assert not any(any(data[SECTOR - 1 :]) for data in noise.values())
    except Damaged:
        pass


@pytest.mark.parametrize("batch", [[b"t" * 1400], [b"t" * 300, bytes(1000)]])
def test_any_torn_end_is_left_out_and_written_around(batch: list[bytes]) -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a" * 100)
    files.syncs_fail = True
    append(log, *batch)
    dirty = files.unsettled()
    for count in range(len(dirty) + 1):
        for reached in itertools.combinations(dirty, count):
            cut = files.after_power_cut(lambda name, sector, reached=reached: (name, sector) in reached)
            expected = [b"a" * 100, *batch] if count == len(dirty) else [b"a" * 100]
            log = opened(cut)
            assert found(log) == expected
            append(log, b"b" * 900)
            assert found(opened(cut.after_power_cut(nothing))) == [*expected, b"b" * 900]


def test_a_crash_while_recovering_is_harmless() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a")
    files.syncs_fail = True
    append(log, b"t" * 1400)
    cut = files.after_power_cut(lambda _, sector: sector != 2)
    for _ in range(3):
        opened(cut, execute=Steps())
        cut = cut.after_power_cut(nothing)
    assert found(opened(cut)) == [b"a"]
