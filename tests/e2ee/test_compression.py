from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.compression import deflate, inflate
from nightmail.e2ee.errors import BadEncoding


@given(st.binary(max_size=2_000) | st.binary(min_size=4_000, max_size=9_000))
def test_what_is_deflated_comes_back(data: bytes) -> None:
    assert inflate(deflate(data), len(data)) == data


def test_what_would_be_too_long_is_refused_before_it_is_unpacked() -> None:
    bomb = deflate(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(BadEncoding):
            inflate(bomb, 1_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("wrong", [b"", b"\xff\xff", deflate(b"hello")[:-1], deflate(b"hello") + b"x"])
def test_what_does_not_unpack_to_its_very_end_is_refused(wrong: bytes) -> None:
    with pytest.raises(BadEncoding):
        inflate(wrong, 1_000)
