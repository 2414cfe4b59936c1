from __future__ import annotations

import struct
from contextlib import suppress
from types import new_class
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.answers import Done
from nightmail.model.limits import FoldLimits
from nightmail.model.records import (
    Acked,
    AnyBody,
    Author,
    BadRecord,
    Body,
    Copied,
    Envelope,
    Forwarded,
    LimitsSet,
    Pace,
    Receipted,
    Record,
    SaidByDevices,
    Sent,
    Ticked,
    Told,
    decode_record,
    encode_record,
)
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.model.values import built, ids, named

BODIES = get_args(AnyBody)


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
    receipted = Receipted(1, 2, Lane.NORMAL, 3, MessageState.READ, Reason.NONE, 5, ((1, 2),))
    for body in (copied, receipted):
        record = Record(0, 0, Forwarded(1, 2, body))
        assert decode_record(encode_record(record)) == record


# --- each class says everything about its record ----------------------------------------------


def subclasses() -> set[type[Body]]:
    return {kind for kind in Body.__subclasses__() if kind.__module__.startswith("nightmail.")}


def test_every_record_is_in_the_union_of_its_topic() -> None:
    assert set(BODIES) == subclasses()


@named(BODIES)
def test_only_a_record_that_a_peer_may_say_has_a_form(kind: type[Body]) -> None:
    assert ("form" in vars(kind)) == bool(kind.said_by & (Author.DEVICE | Author.SERVER))


WHOLE: dict[str, Any] = {
    "said_by": Author.DEVICE, "since": 1, "pace": Pace.ITEM, "frees_space": False, "answered_by": (Done,),
    "home": lambda _, by: by, "form": lambda *_: None,
}  # fmt: skip


@pytest.mark.parametrize("left_out", WHOLE)
def test_a_record_that_leaves_something_out_cannot_be_imported(left_out: str) -> None:
    says = {name: value for name, value in WHOLE.items() if name != left_out}
    with pytest.raises(TypeError, match=rf"the record Hurried does not say its .*{left_out}"):
        new_class("Hurried", (Body,), {"frozen": True, "tag": 99}, lambda body: body.update(says))


@pytest.mark.parametrize("author", [Author.SHARD, Author.FOLD, Author.TIME, Author.OPERATOR])
def test_what_no_peer_says_needs_neither_form_nor_pace_but_a_home(author: Author) -> None:
    says = {"said_by": author, "since": 1}
    with pytest.raises(TypeError, match=r"the record Hurried does not say its home$"):
        new_class("Hurried", (Body,), {"frozen": True, "tag": 99}, lambda body: body.update(says))


def test_a_record_without_a_tag_cannot_be_decoded_among_the_others() -> None:
    class Untagged(msgspec.Struct, array_like=True):
        pass

    with pytest.raises(TypeError):
        msgspec.msgpack.Decoder(AnyBody | Untagged)


def test_what_devices_may_say_over_their_connection_is_what_says_so() -> None:
    assert set(get_args(SaidByDevices)) == {kind for kind in subclasses() if kind.said_by & Author.DEVICE}


def test_what_shards_tell_each_other_is_what_says_so() -> None:
    assert {*get_args(Told), Forwarded} == {kind for kind in subclasses() if kind.said_by & Author.SHARD}


def test_only_acknowledgements_free_space() -> None:
    assert {kind.__name__ for kind in subclasses() if kind.frees_space} == {"Acked", "GroupAcked", "ReceiptsAcked"}


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
