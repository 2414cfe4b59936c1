from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.cipher import BLOCK_BYTES, cbc_encrypt
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.padding import BUCKET_MIN, bucket, pad, unpad


@given(st.binary(max_size=5_000))
def test_what_is_padded_comes_back_and_fills_its_bucket_on_the_wire(data: bytes) -> None:
    padded = pad(data)
    assert unpad(padded) == data
    assert len(cbc_encrypt(bytes(32), bytes(16), padded)) == bucket(len(data))


def test_sizes_are_few_whole_blocks_and_waste_little() -> None:
    sizes = [bucket(length) for length in range(70_000)]
    assert sizes == sorted(sizes)
    assert all(size % BLOCK_BYTES == 0 and size >= length + 2 for length, size in enumerate(sizes))
    assert all(size <= (length + 2) * 1.25 for length, size in enumerate(sizes) if length >= 512)
    assert len(set(sizes)) < 40
    assert sizes[0] == BUCKET_MIN


@pytest.mark.parametrize("wrong", [b"", b"\0" * 127, b"hello", pad(b"hello") + b"\1"])
def test_padding_that_is_not_ours_is_refused(wrong: bytes) -> None:
    with pytest.raises(BadEncoding):
        unpad(wrong)
