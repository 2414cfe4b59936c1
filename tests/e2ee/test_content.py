from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.content import CRITICAL, LIFE_MS_MAX, Content, decode_content, encode_content
from nightmail.e2ee.errors import BadEncoding, UnknownVersion
from nightmail.model.words import Kind

contents = st.builds(
    Content,
    st.sampled_from(Kind),
    st.none() | st.text(),
    st.none() | st.just("1f:1706745600000:00042:x9k2"),
    st.none() | st.binary(),
    st.none() | st.integers(0, 65_535),
    st.none() | st.integers(1, LIFE_MS_MAX),
    st.lists(st.integers(1, (1 << 49) - 1), max_size=5, unique=True).map(lambda found: tuple(sorted(found))),
)


@given(contents)
def test_a_content_comes_through_its_bytes(content: Content) -> None:
    assert decode_content(encode_content(content)) == content


@given(st.binary(max_size=60))
def test_any_bytes_are_a_content_or_refused(data: bytes) -> None:
    try:
        content = decode_content(data)
    except BadEncoding:
        return
    assert isinstance(content, Content)


def test_a_field_of_the_future_is_passed_over_unless_it_must_be_understood() -> None:
    hello = encode_content(Content(Kind.TEXT, "hello"))
    assert decode_content(hello + bytes((CRITICAL - 1, 0, 0, 0, 1, 9))) == Content(Kind.TEXT, "hello")
    with pytest.raises(BadEncoding, match="is critical"):
        decode_content(hello + bytes((CRITICAL, 0, 0, 0, 1, 9)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x01\x09",
        b"\x01\x01\x01\x00\x00\x00\x09short",
        b"\x01\x01\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00",
        b"\x01\x01\x02\x00\x00\x00\x01x\x01\x00\x00\x00\x00",
        b"\x01\x01\x01\x00\x00\x00\x01\xff",
        b"\x01\x01\x02\x00\x00\x00\x04nope",
        b"\x01\x03\x04\x00\x00\x00\x01x",
        b"\x01\x01\x05\x00\x00\x00\x03\x00\x00\x01",
        b"\x01\x01\x05\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\x01\x01\x05\x00\x00\x00\x04" + (LIFE_MS_MAX + 1).to_bytes(4, "big"),
    ],
)
def test_what_is_not_of_the_form_is_refused(data: bytes) -> None:
    with pytest.raises(BadEncoding):
        decode_content(data)


def test_a_version_of_the_future_is_named_as_such() -> None:
    with pytest.raises(UnknownVersion):
        decode_content(b"\x02\x01")


def test_a_content_does_not_show_what_it_says() -> None:
    assert repr(Content(Kind.TEXT, "secret")) == "<Content: text>"
    with pytest.raises(BadEncoding) as caught:
        decode_content(b"\x01\x01\x01\x00\x00\x00\x07secret\xff")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
