from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from nightmail.e2ee.errors import OtherKey, Rejected, StreamBroken, UnknownVersion
from nightmail.e2ee.streams.padding import padded_size
from nightmail.e2ee.streams.stream import (
    CHUNK_BYTES,
    HEAD_BYTES,
    SEALED_CHUNK_BYTES,
    StreamCipher,
    StreamOpener,
    StreamSealer,
    sealed_size,
)

KEY = bytes(range(32))
LONG = bytes(range(256)) * 1_000
"""Four chunks."""


def sealed(content: bytes, key: bytes = KEY) -> bytes:
    sealer = StreamSealer(key)
    return sealer.head + b"".join(chunk.data for chunk in sealer.chunks([content]))


def opened(stream: bytes, key: bytes = KEY, cut: int = 0, **options: object) -> bytes:
    pieces = [stream[at : at + cut] for at in range(0, len(stream), cut)] if cut else [stream]
    return b"".join(StreamOpener(key, **options).content(pieces))  # type: ignore[arg-type]


def chunks_of(stream: bytes) -> list[bytes]:
    body = stream[HEAD_BYTES:]
    return [body[at : at + SEALED_CHUNK_BYTES] for at in range(0, len(body), SEALED_CHUNK_BYTES)]


@given(
    st.lists(st.sampled_from([b"", b"\0", b"\x80", b"a", b"\0" * 1_000, b"\x80" + bytes(70_000), b"text" * 9_000])),
    st.integers(1, 200_000),
)
def test_what_is_sealed_comes_back_however_it_is_cut(pieces: list[bytes], cut: int) -> None:
    content = b"".join(pieces)
    sealer = StreamSealer(KEY)
    stream = sealer.head + b"".join(chunk.data for chunk in sealer.chunks(pieces))
    assert opened(stream, cut=cut, digest=sealer.digest, sealed_bytes=len(stream)) == content
    assert stream == sealed(content)
    assert len(stream) == sealed_size(len(content))


@pytest.mark.parametrize("length", [0, 1, 1_023, 1_024, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_every_boundary_of_a_chunk_is_kept(length: int) -> None:
    content = LONG[:length]
    assert opened(sealed(content)) == content


def test_a_stream_is_what_the_document_says() -> None:
    out = HKDF(SHA256(), 71, bytes(32), b"nightmail/v1/stream").derive(KEY)
    key, commitment, prefix = out[:32], out[32:64], out[64:]
    head = b"\1" + commitment
    padded = (LONG + b"\x80").ljust(padded_size(len(LONG)), b"\0")
    plain = [padded[at : at + 65_536] for at in range(0, len(padded), 65_536)]
    made = [
        AESGCM(key).encrypt(prefix + n.to_bytes(4, "big") + bytes((n == len(plain) - 1,)), each, head)
        for n, each in enumerate(plain)
    ]
    sealer = StreamSealer(KEY)
    chunks = list(sealer.chunks([LONG]))
    assert (sealer.head, [chunk.data for chunk in chunks]) == (head, made)
    assert [chunk.digest for chunk in chunks] == [sha256(each).digest() for each in made]
    assert sealer.digest == sha256(head + b"".join(chunk.digest for chunk in chunks)).digest()


def test_sizes_are_few_and_waste_little() -> None:
    sizes = [padded_size(length) for length in range(200_000)]
    assert sizes == sorted(sizes)
    assert all(length < size <= max(1_024, length * 1.125) for length, size in enumerate(sizes))
    assert len(set(sizes)) < 160
    assert padded_size(1 << 30) / (1 << 30) < 1.035


Spoil = Callable[[list[bytes]], list[bytes]]
SPOILED: dict[str, Spoil] = {
    "two chunks are swapped": lambda c: [c[1], c[0], *c[2:]],
    "one is left out": lambda c: [c[0], *c[2:]],
    "one comes twice": lambda c: [c[0], c[0], *c[1:]],
    "the last one is missing": lambda c: c[:-1],
    "all are missing": lambda c: [],
    "the last one is cut": lambda c: [*c[:-1], c[-1][:-1]],
    "the last one is only a tag": lambda c: [*c[:-1], c[-1][:16]],
    "something follows": lambda c: [*c, b"\0"],
    "the last one follows itself": lambda c: [*c, c[-1]],
    "a bit of the first is another one": lambda c: [bytes((c[0][0] ^ 1,)) + c[0][1:], *c[1:]],
    "a bit of a tag is another one": lambda c: [c[0][:-1] + bytes((c[0][-1] ^ 1,)), *c[1:]],
}


@pytest.mark.parametrize("why", SPOILED)
@pytest.mark.parametrize("cut", [0, 1_000])
def test_a_stream_that_was_changed_is_refused_and_only_what_verified_comes_out(why: str, cut: int) -> None:
    stream = sealed(LONG)
    spoiled = stream[:HEAD_BYTES] + b"".join(SPOILED[why](chunks_of(stream)))
    pieces = [spoiled[at : at + cut] for at in range(0, len(spoiled), cut)] if cut else [spoiled]
    came = bytearray()

    def take() -> None:
        for piece in StreamOpener(KEY).content(pieces):
            came.extend(piece)

    with pytest.raises(StreamBroken):
        take()
    assert LONG.startswith(bytes(came))
    assert len(came) < len(LONG)


def test_a_chunk_of_another_stream_of_the_same_length_is_refused() -> None:
    one, other = sealed(LONG), sealed(LONG, b"k" * 32)
    mixed = one[:HEAD_BYTES] + b"".join([chunks_of(other)[0], *chunks_of(one)[1:]])
    with pytest.raises(StreamBroken):
        opened(mixed)


def test_another_key_is_refused_before_any_chunk_is_looked_at() -> None:
    with pytest.raises(OtherKey):
        opened(sealed(LONG), b"k" * 32)


def test_a_chunk_that_opens_under_another_key_does_not_pass_for_this_stream() -> None:
    """The head says which key it is: with another head the same chunks are refused."""
    other = StreamCipher(b"k" * 32)
    with pytest.raises(StreamBroken):
        opened(other.head + b"".join(chunks_of(sealed(b"x"))), b"k" * 32)


def test_another_content_under_the_same_key_is_told_by_its_digest() -> None:
    sealer = StreamSealer(KEY)
    list(sealer.chunks([b"this one"]))
    with pytest.raises(StreamBroken):
        opened(sealed(b"another"), digest=sealer.digest)


def test_a_stream_of_a_newer_version_is_named_so() -> None:
    with pytest.raises(UnknownVersion) as caught:
        opened(b"\2" + sealed(b"x")[1:])
    assert caught.value.version == 2


@pytest.mark.parametrize("length", range(HEAD_BYTES + 1))
def test_a_stream_that_ends_in_its_head_is_refused(length: int) -> None:
    with pytest.raises(StreamBroken):
        opened(sealed(b"x")[:length])


def test_a_stream_that_is_longer_than_announced_is_refused_while_it_comes() -> None:
    took = 0

    def endless() -> Iterator[bytes]:
        nonlocal took
        yield sealed(LONG)
        while True:
            took += 1
            yield bytes(1_000)

    with pytest.raises(StreamBroken):
        list(StreamOpener(KEY, sealed_bytes=len(sealed(LONG))).content(endless()))
    assert took == 1


@pytest.mark.parametrize(
    "plain",
    [b"", b"\x80", b"text", b"text\x80".ljust(1_025, b"\0"), b"text".ljust(1_024, b"\0"), b"\x80" + bytes(2_000)],
)
def test_padding_that_is_not_the_one_that_belongs_to_its_content_is_refused(plain: bytes) -> None:
    cipher = StreamCipher(KEY)
    with pytest.raises(Rejected):
        opened(cipher.head + cipher.seal(0, plain, is_last=True))


def test_a_long_content_takes_no_more_memory_than_a_few_chunks() -> None:
    """The sealer and the opener pass on what they have before they ask for more."""
    asked = handed = 0

    def content() -> Iterator[bytes]:
        nonlocal asked
        for _ in range(200):
            asked += 1
            yield bytes(CHUNK_BYTES)

    sealer = StreamSealer(KEY)

    def stream() -> Iterator[bytes]:
        yield sealer.head
        for chunk in sealer.chunks(content()):
            yield chunk.data

    for piece in StreamOpener(KEY).content(stream()):
        handed += len(piece)
        assert asked * CHUNK_BYTES - handed <= 3 * CHUNK_BYTES
    assert handed == 200 * CHUNK_BYTES
