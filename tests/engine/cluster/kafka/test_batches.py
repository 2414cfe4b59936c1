from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.engine.cluster.kafka.batches import SPAN, first_of, message_after, pack, unpack
from nightmail.engine.ports import Damaged, Stored


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 50), st.lists(st.binary(max_size=40), min_size=1, max_size=50))
def test_a_batch_comes_back_as_it_was_packed(message: int, at: int, records: list[bytes]) -> None:
    stored = unpack(message, pack(at, records))
    assert stored == Stored(message * SPAN + 1, at, records, SPAN)
    assert (first_of(message), message_after(stored.last)) == (stored.first, message + 1)


def test_a_full_batch_ends_where_the_next_begins() -> None:
    assert unpack(3, pack(1, [b"r"] * SPAN)).last + 1 == first_of(4)


@given(st.binary(max_size=60))
def test_what_is_not_ours_is_said_and_never_believed(value: bytes) -> None:
    try:
        stored = unpack(0, value)
    except Damaged:
        return
    assert pack(stored.at, stored.records) == value


def test_a_message_that_was_cut_short_is_damaged() -> None:
    with pytest.raises(Damaged, match="message 7 of the log"):
        unpack(7, pack(1, [b"abc", b"d"])[:-1])
