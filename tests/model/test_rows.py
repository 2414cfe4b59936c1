from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nightmail.core.state import decode_entry, encode_row
from nightmail.model.limits import FoldLimits
from nightmail.model.notes import Note
from nightmail.model.rows import Entry, GroupEntry, Kept, PendingReceipt, PendingReceipts, Row, RowKey, Shard, queue_id
from nightmail.model.words import Lane, MessageState, Reason
from tests.model.values import built, named

ROWS = get_args(Row)


@named((*ROWS, Entry, GroupEntry))
@given(data=st.data())
def test_a_row_comes_back_as_it_was_written_in_the_same_order_and_bytes(kind: Any, data: st.DataObject) -> None:
    row = data.draw(built(kind))
    encoded = encode_row(row)
    loaded = msgspec.msgpack.decode(encoded, type=kind)
    assert loaded == row
    assert encode_row(loaded) == encoded


@named((*ROWS, Entry, *get_args(Note)))
@given(data=st.binary(max_size=120))
def test_random_bytes_are_a_row_or_a_decode_error_and_nothing_else(kind: Any, data: bytes) -> None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        msgspec.msgpack.decode(data, type=kind)


@given(st.binary(max_size=120))
def test_random_bytes_are_an_entry_or_a_decode_error_and_nothing_else(data: bytes) -> None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        decode_entry(data)


@given(data=st.data())
def test_an_entry_that_came_through_a_group_is_told_apart_by_its_length(data: st.DataObject) -> None:
    plain, through_a_group = data.draw(built(Entry)), data.draw(built(GroupEntry))
    assert decode_entry(encode_row(plain)) == plain
    assert decode_entry(encode_row(through_a_group)) == through_a_group
    assert (plain.group_seq, plain.epoch) == (0, 0)


def test_a_loaded_receipt_is_found_under_the_key_it_was_noted_under() -> None:
    key = (1, 2, Lane.HIGH, 3, MessageState.FAILED, 4)
    changes = PendingReceipts(1, {key: PendingReceipt(key, 1, 5, Reason.EXPIRED, [4, 4])})
    loaded = msgspec.msgpack.decode(encode_row(changes), type=PendingReceipts)
    assert loaded.items[key] == changes.items[key]
    assert loaded.items[key].state is MessageState.FAILED


def test_a_shard_at_birth_knows_nothing() -> None:
    assert Shard() == Shard(now=0, fold=1, limits=FoldLimits(), next_due=0)
    assert Shard().due is not Shard().due


def test_queues_of_one_device_lie_side_by_side() -> None:
    assert [queue_id(device, lane) for device in (4, 5) for lane in Lane] == [8, 9, 10, 11]


def test_every_table_has_a_number_that_never_changes() -> None:
    assert {kind.name: int(kind) for kind in Kept} == {
        "SHARD": 0,
        "ACCOUNT": 1,
        "STREAM": 2,
        "MAILBOX": 3,
        "RECEIPTS": 4,
        "DUE_HOUR": 5,
        "DUE": 6,
        "DEAD_LETTER": 7,
        "KEYS": 8,
        "LETTER_CLASSES": 9,
        "LETTER_PAGE": 10,
        "HANDLE": 11,
        "SHARES": 16,
        "KNOWN": 17,
        "GROUP": 20,
        "ROSTER": 21,
        "MEMBER": 22,
        "CHAIN": 23,
        "ACCOUNT_GROUPS": 24,
        "AT_HEAD": 25,
        "SCHEDULE": 30,
        "ACCOUNT_SCHEDULES": 32,
        "SCHEDULE_PAGE": 33,
        "SCHEDULE_NAME": 34,
        "PUSH": 40,
        "BLOB": 48,
        "AUDIENCE": 49,
        "ACCOUNT_BLOBS": 50,
    }
    assert RowKey(Kept.ACCOUNT, 5) == RowKey(Kept.ACCOUNT, 5, 0)
