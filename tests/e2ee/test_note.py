from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee import note as notes
from nightmail.e2ee.compression import deflate
from nightmail.e2ee.content import CONTENT_BYTES_MAX, Content, encode_content
from nightmail.e2ee.errors import BadEncoding, NotAsAnnounced, UnknownVersion
from nightmail.e2ee.note import Note, check, pack, tag_of, unpack
from nightmail.e2ee.padding import pad
from nightmail.model.rows import Entry
from nightmail.model.words import Kind

from .devices import address

BY = address("ada").device
ID = f"{BY:x}:1706745600000:00042:x9k2"
OTHER_ID = f"{BY:x}:1706745600000:00043:x9k2"
CONVERSATION = "1f-2e"
NONCE = bytes(range(16))
HELLO = encode_content(Content(Kind.TEXT, "hello"))


def an_entry(content: bytes = HELLO, *, of: str | None = None, ident: str = ID, kind: Kind = Kind.TEXT) -> Entry:
    return Entry(BY, 1, 1, ident, tag_of(NONCE, content, CONVERSATION), kind, of, 1, 0, b"")


@given(st.binary(min_size=2, max_size=4_000), st.integers(0, 2**53))
def test_a_note_comes_through_its_bytes(content: bytes, stamp: int) -> None:
    note = Note(NONCE, ID, content, stamp)
    assert unpack(pack(note)) == note


def test_the_tag_is_the_commitment_that_the_design_names() -> None:
    assert tag_of(NONCE, HELLO, CONVERSATION) == hashlib.sha256(NONCE + HELLO + b"1f-2e").digest()[:16]


def test_text_is_compressed_where_that_saves_a_size_and_nothing_else_ever_is() -> None:
    long = "the same words again and again, " * 20
    text = pack(Note(NONCE, ID, encode_content(Content(Kind.TEXT, long))))
    keys = pack(Note(NONCE, ID, encode_content(Content(Kind.CONTROL, data=long.encode()))))
    assert len(text) < len(keys)
    assert (text[1], keys[1]) == (notes.DEFLATED, 0)
    # Fits the same size anyway: its length then says nothing.
    assert pack(Note(NONCE, ID, HELLO))[1] == 0


def test_short_texts_all_look_alike() -> None:
    sizes = {len(pack(Note(NONCE, ID, encode_content(Content(Kind.TEXT, "x" * n))))) for n in range(40)}
    assert len(sizes) == 1


def test_what_is_as_announced_is_believed_also_when_sealed_again() -> None:
    check(Note(NONCE, ID, HELLO), an_entry(), CONVERSATION)
    check(Note(NONCE, ID, HELLO, stamp=5), an_entry(of=ID, ident=OTHER_ID), CONVERSATION)


@pytest.mark.parametrize(
    ("note", "entry", "conversation", "what"),
    [
        (Note(NONCE, ID, HELLO), an_entry(HELLO + b"!"), CONVERSATION, "content tag"),
        (Note(b"another nonce!!!", ID, HELLO), an_entry(), CONVERSATION, "content tag"),
        (Note(NONCE, ID, HELLO), an_entry(), "1f-2f", "content tag"),
        (Note(NONCE, ID, HELLO), an_entry(ident=OTHER_ID), CONVERSATION, "message id"),
        (Note(NONCE, ID, HELLO), an_entry(of=OTHER_ID), CONVERSATION, "message id"),
        (Note(NONCE, ID, HELLO), an_entry(kind=Kind.CONTROL), CONVERSATION, "kind"),
        (Note(NONCE, "f00001:1:1:a", HELLO), an_entry(ident="f00001:1:1:a"), CONVERSATION, "author"),
    ],
)  # fmt: skip
def test_what_is_not_as_announced_is_refused(note: Note, entry: Entry, conversation: str, what: str) -> None:
    with pytest.raises(NotAsAnnounced, match=what):
        check(note, entry, conversation)


def test_a_sender_cannot_show_two_contents_under_one_tag() -> None:
    other = encode_content(Content(Kind.TEXT, "goodbye"))
    with pytest.raises(NotAsAnnounced):
        check(Note(NONCE, ID, other), an_entry(HELLO), CONVERSATION)


def test_bytes_of_no_known_form_are_refused() -> None:
    good = pack(Note(NONCE, ID, HELLO))
    with pytest.raises(UnknownVersion):
        unpack(b"\x02" + good[1:])
    for wrong in (b"", pad(b"short"), good + b"\1", pad(good[:26] + b"\xff" + good[27:].rstrip(b"\0")[:-1])):
        with pytest.raises(BadEncoding):
            unpack(wrong)
    flagged = bytes((1, 0x80)) + good[2:]
    with pytest.raises(BadEncoding):
        unpack(flagged)


def test_a_small_note_does_not_unpack_into_a_large_one() -> None:
    head = bytes((1, notes.DEFLATED)) + NONCE + bytes(8) + bytes((len(ID),)) + ID.encode()
    bomb = deflate(b"\x01\x01" + bytes(100 * CONTENT_BYTES_MAX))
    assert len(bomb) < CONTENT_BYTES_MAX
    with pytest.raises(BadEncoding, match="too long"):
        unpack(pad(head + bomb))


def test_a_note_does_not_show_what_it_says() -> None:
    assert "hello" not in repr(Note(NONCE, ID, HELLO))
