from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.core.state import decode_entry, encode_row
from nightmail.model.limits import FoldLimits
from nightmail.model.notes import Note
from nightmail.model.records import (
    Acked,
    AnyBody,
    BadRecord,
    Batch,
    Copied,
    Envelope,
    Forwarded,
    LimitsSet,
    Receipted,
    Record,
    Sent,
    Ticked,
    decode_record,
    encode_record,
)
from nightmail.model.rows import Change, Changes, Entry, Kept, Row, RowKey, Shard, queue_id
from nightmail.model.words import Kind, Lane, Platform, Reason, State

BODIES = get_args(AnyBody)
ROWS = get_args(Row)
ids = st.integers(0, 2**61 - 1)

FIELDS: dict[Any, st.SearchStrategy[Any]] = {
    int: ids,
    bool: st.booleans(),
    str: st.text(max_size=20),
    bytes: st.binary(max_size=40),
    bytearray: st.binary(max_size=40).map(bytearray),
    **{word: st.sampled_from(word) for word in (Kind, Lane, Platform, Reason, State)},
}


def built(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of the model, by its annotations."""
    if kind in FIELDS:
        return FIELDS[kind]
    if hasattr(kind, "__struct_fields__"):
        hints = {field.name: field.type for field in msgspec.structs.fields(kind)}
        return st.builds(kind, **{name: built(hint) for name, hint in hints.items()})
    origin, args = getattr(kind, "__origin__", None), get_args(kind)
    if origin is tuple and args[-1] is ...:
        return st.lists(built(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(built, args))
    if origin is list:
        return st.lists(built(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(built(args[0]), built(args[1]), max_size=3)
    if kind is type(None):
        return st.none()
    assert args, kind
    return st.one_of(*map(built, args))


def named(kinds: tuple[Any, ...]) -> Any:
    return pytest.mark.parametrize("kind", kinds, ids=[kind.__name__ for kind in kinds])


# --- records ----------------------------------------------------------------------------------


@named(BODIES)
@given(data=st.data())
def test_a_record_comes_back_as_it_was_written(kind: Any, data: st.DataObject) -> None:
    record = Record(data.draw(ids), data.draw(ids), data.draw(built(kind)))
    encoded = encode_record(record)
    assert decode_record(encoded) == record
    assert decode_record(memoryview(encoded)) == record
    assert encode_record(decode_record(encoded)) == encoded


def test_a_record_is_its_author_and_answer_address_and_then_the_body_as_it_was_said() -> None:
    body = Acked(Lane.HIGH, 7, (3,))
    assert encode_record(Record(5, 6, body)) == struct.pack("<QQ", 5, 6) + msgspec.msgpack.encode(body)


@given(st.binary(max_size=200))
def test_random_bytes_are_a_record_or_bad_and_nothing_else(data: bytes) -> None:
    with suppress(BadRecord):
        decode_record(data)


@given(st.binary(min_size=16, max_size=16), st.sampled_from(BODIES), st.data())
def test_bytes_that_are_almost_a_record_are_a_record_or_bad_and_nothing_else(
    header: bytes, kind: Any, data: st.DataObject
) -> None:
    encoded = bytearray(header + msgspec.msgpack.encode(data.draw(built(kind))))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(16, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(encoded)))
    for mangled in (encoded, encoded[:cut], encoded + encoded[cut:]):
        with suppress(BadRecord):
            decode_record(bytes(mangled))


@pytest.mark.parametrize("data", [b"", b"short", bytes(16), bytes(16) + b"\xc1", bytes(16) + b"\x90", bytes(17) + b"x"])
def test_bytes_that_are_no_record_say_so(data: bytes) -> None:
    with pytest.raises(BadRecord):
        decode_record(data)


def test_what_stands_behind_a_record_makes_it_bad() -> None:
    with pytest.raises(BadRecord):
        decode_record(encode_record(Record(1, 2, Ticked())) + b"x")


def test_a_word_that_nobody_knows_makes_a_record_bad() -> None:
    with pytest.raises(BadRecord):
        decode_record(bytes(16) + msgspec.msgpack.encode([3, 9, 1, []]))  # there is no lane 9


def test_every_kind_of_record_has_a_number_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in BODIES]
    assert len(set(tags)) == len(tags)


def test_records_are_values() -> None:
    one, other = Acked(Lane.NORMAL, 5), Acked(Lane.NORMAL, 5)
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(AttributeError):
        one.upto = 6  # pyright: ignore[reportAttributeAccessIssue]


def test_a_batch_knows_its_last_offset() -> None:
    assert Batch(5, 0, [Record(0, 0, Ticked()), Record(0, 0, Ticked())]).last == 6


def test_a_record_of_an_older_program_that_lacks_newer_fields_is_read_with_their_defaults() -> None:
    assert decode_record(bytes(16) + msgspec.msgpack.encode([3, 0, 7])) == Record(0, 0, Acked(Lane.NORMAL, 7, ()))
    older = msgspec.msgpack.encode([50, [123]])
    assert decode_record(bytes(16) + older) == Record(0, 0, LimitsSet(FoldLimits(mailbox_entries=123)))


def test_a_forward_carries_only_what_shards_say_to_each_other() -> None:
    for kind in BODIES:
        encoded = bytes(16) + msgspec.msgpack.encode([34, 1, 2, [kind.__struct_config__.tag]])
        with pytest.raises(BadRecord):
            decode_record(encoded)
    copied = Copied(1, 2, Lane.NORMAL, 3, "id", b"tag", Kind.TEXT, None, 0, 5, (Envelope(1, 2, b"x"),))
    receipted = Receipted(1, 2, Lane.NORMAL, 3, State.READ, Reason.NONE, 5, ((1, 2),))
    for body in (copied, receipted):
        record = Record(0, 0, Forwarded(1, 2, body))
        assert decode_record(encode_record(record)) == record


# --- rows -------------------------------------------------------------------------------------


@named((*ROWS, Entry))
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


def test_a_loaded_receipt_is_found_under_the_key_it_was_noted_under() -> None:
    key = (1, 2, Lane.HIGH, 3, State.FAILED, 4)
    changes = Changes(1, {key: Change(key, 1, 5, Reason.EXPIRED, [4, 4])})
    loaded = msgspec.msgpack.decode(encode_row(changes), type=Changes)
    assert loaded.items[key] == changes.items[key]
    assert loaded.items[key].state is State.FAILED


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
        "CHANGES": 4,
        "DUE_HOUR": 5,
        "DUE": 6,
        "DEAD_LETTER": 7,
        "KEYS": 8,
    }
    assert RowKey(Kept.ACCOUNT, 5) == RowKey(Kept.ACCOUNT, 5, 0)


# --- what the server is told of a message -----------------------------------------------------


def test_a_message_shows_the_server_these_fields_and_nothing_more() -> None:
    assert Sent.__struct_fields__ == (
        "to", "lane", "n", "floor", "seen", "id", "tag", "kind", "of", "life_ms", "list_version",
        "envelopes", "own_envelopes",
    )  # fmt: skip
    assert Envelope.__struct_fields__ == ("device", "registration", "ciphertext")
    assert Entry.__struct_fields__ == (
        "by", "to", "n", "id", "tag", "kind", "of", "at", "life_ms", "ciphertext",
    )  # fmt: skip
