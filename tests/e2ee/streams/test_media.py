"""Pointers to sealed files: one form, and bounds that a hostile sender cannot leave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.errors import BadEncoding, Rejected, UnknownVersion
from nightmail.e2ee.streams.media import (
    NAME_BYTES_MAX,
    SIZE_MAX,
    THUMBNAIL_BYTES_MAX,
    TYPE_CHARS_MAX,
    MediaPointer,
    decode_pointer,
    encode_pointer,
    is_file_name,
    parse_blob_id,
)
from nightmail.model.forms import ACCOUNT_MAX

POINTER = MediaPointer(0x1F, bytes(range(16)), b"k" * 32, b"d" * 32, 1_000, "a b.png", "image/png", b"small")


def test_a_pointer_comes_back_as_it_was() -> None:
    large = POINTER._replace(
        owner=ACCOUNT_MAX, size=SIZE_MAX, name="ü" * 127, type="a/" + "b" * (TYPE_CHARS_MAX - 2),
        thumbnail=bytes(THUMBNAIL_BYTES_MAX),
    )  # fmt: skip
    for pointer in (POINTER, POINTER._replace(thumbnail=b"", size=0), large):
        assert decode_pointer(encode_pointer(pointer)) == pointer


def test_a_blob_is_named_by_its_owner_and_what_the_server_drew() -> None:
    assert POINTER.blob_id == "000000000001f-000102030405060708090a0b0c0d0e0f"
    assert parse_blob_id(POINTER.blob_id) == (POINTER.owner, POINTER.blob)


@pytest.mark.parametrize(
    "text",
    ["", "1f-000102030405060708090a0b0c0d0e0f", POINTER.blob_id.upper(), POINTER.blob_id + "\n",
     "0000000000000-" + "0" * 32, "f" * 13 + "-" + "0" * 32, "../" + POINTER.blob_id],
)  # fmt: skip
def test_another_spelling_of_a_blob_is_refused(text: str) -> None:
    with pytest.raises(BadEncoding):
        parse_blob_id(text)


@pytest.mark.parametrize(
    "bad",
    [
        {"owner": 0}, {"owner": ACCOUNT_MAX + 1}, {"size": SIZE_MAX + 1}, {"name": ""}, {"name": ".."},
        {"name": "../x"}, {"name": "a\\b"}, {"name": "c:x"}, {"name": "a\nb"}, {"name": " a"}, {"name": "a."},
        {"name": "\u202egnp.exe"}, {"name": "x" * (NAME_BYTES_MAX + 1)}, {"type": "image"}, {"type": "image/png; x=y"},
        {"type": ""}, {"type": "a/" + "b" * TYPE_CHARS_MAX}, {"thumbnail": bytes(THUMBNAIL_BYTES_MAX + 1)},
    ],
)  # fmt: skip
def test_a_pointer_that_breaks_a_bound_is_not_written(bad: dict[str, Any]) -> None:
    with pytest.raises(BadEncoding):
        encode_pointer(POINTER._replace(**bad))


@pytest.mark.parametrize(
    ("part", "bad"),
    [(b"a b.png", b"../.png"), (b"a b.png", b"a\nb.png"), (b"a b.png", b"\xffb.png "), (b"image/png", b"image png"),
     ((0x1F).to_bytes(8, "big"), bytes(8)), ((1_000).to_bytes(8, "big"), b"\xff" * 8)],
)  # fmt: skip
def test_a_pointer_that_breaks_a_bound_is_not_read(part: bytes, bad: bytes) -> None:
    with pytest.raises(BadEncoding):
        decode_pointer(encode_pointer(POINTER).replace(part, bad, 1))


def test_a_pointer_that_is_cut_extended_or_of_another_version_is_refused() -> None:
    data = encode_pointer(POINTER)
    for length in range(len(data)):
        with pytest.raises(BadEncoding):
            decode_pointer(data[:length])
    with pytest.raises(BadEncoding):
        decode_pointer(data + b"\0")
    with pytest.raises(UnknownVersion):
        decode_pointer(b"\x02" + data[1:])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_pointer_or_refused(data: bytes) -> None:
    for raw in (data, b"\x01" + data):
        try:
            pointer = decode_pointer(raw)
        except Rejected:
            continue
        assert encode_pointer(pointer) == raw
        assert is_file_name(pointer.name)
