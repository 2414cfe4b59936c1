"""What a server may hand out instead of a file: each is refused, and nothing of it gets a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nightmail.client.media.opened_file import KeptFiles
from nightmail.client.media.stream_check import StreamCheck
from nightmail.client.media_errors import ChunkRefused, DigestDiffers, FileRefused, FileUnusable, OtherBlob
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.streams.stream import CHUNK_BYTES, HEAD_BYTES, SEALED_CHUNK_BYTES, StreamCipher
from tests.client.media.pointers import CONTENT, sealed

C = SEALED_CHUNK_BYTES
FIRST, SECOND = slice(HEAD_BYTES, HEAD_BYTES + C), slice(HEAD_BYTES + C, HEAD_BYTES + 2 * C)


def arrive(kept: KeptFiles, stream: bytes, pointer: object, block: int = 10_000) -> None:
    with kept.arriving(pointer) as arriving:  # pyright: ignore[reportArgumentType]
        for at in range(arriving.first, len(stream), block):
            arriving.take(stream[at : at + block])
        arriving.finish()


def swapped(stream: bytes) -> bytes:
    return stream[:HEAD_BYTES] + stream[SECOND] + stream[FIRST] + stream[SECOND.stop :]


def replayed(stream: bytes) -> bytes:
    return stream[:HEAD_BYTES] + stream[FIRST] + stream[FIRST] + stream[SECOND.stop :]


def left_out(stream: bytes) -> bytes:
    return stream[:HEAD_BYTES] + stream[SECOND] + stream[SECOND.stop :] + stream[FIRST]


def flipped(stream: bytes) -> bytes:
    return stream[:-1] + bytes((stream[-1] ^ 1,))


def other_key(stream: bytes) -> bytes:
    return StreamCipher(bytes(32)).head + stream[HEAD_BYTES:]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (swapped, ChunkRefused), (replayed, ChunkRefused), (left_out, ChunkRefused), (flipped, ChunkRefused),
        (other_key, OtherBlob), (lambda stream: stream + b"more", OtherBlob),
    ],
)  # fmt: skip
def test_another_stream_is_refused(tmp_path: Path, change: Callable[[bytes], bytes], error: type[FileRefused]) -> None:
    stream, pointer = sealed(tmp_path)
    kept = KeptFiles(tmp_path)
    with pytest.raises(error):
        arrive(kept, change(stream), pointer)
    assert not kept.has(pointer.blob_id)


def test_a_stream_that_is_cut_off_is_not_whole(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    kept = KeptFiles(tmp_path)
    with pytest.raises(AssertionError):
        arrive(kept, stream[:-1], pointer)
    kept.path(pointer.blob_id).write_bytes(stream[: SECOND.start])
    with pytest.raises(OtherBlob):
        list(kept.contents(pointer))


def test_a_stream_that_opens_and_is_another_one_is_refused_before_its_last_chunk(tmp_path: Path) -> None:
    """Whoever has the key could seal other content under it: the digest in the message tells them apart."""
    stream, _ = sealed(tmp_path, bytes(len(CONTENT)))
    _, pointer = sealed(tmp_path)
    came = list[bytes]()
    with pytest.raises(DigestDiffers):
        came.extend(content for _, content in StreamCheck(pointer).take(stream))
    assert sum(map(len, came)) < len(CONTENT) - CHUNK_BYTES // 2


def test_a_stream_whose_padding_is_not_zeros_is_refused(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path, b"x" * 100)
    with pytest.raises(FileRefused):
        list(StreamCheck(pointer._replace(size=99)).take(stream))


def test_each_piece_comes_out_once_however_the_blocks_are_cut(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    for block in (1_000, C, len(stream)):
        check, out, raw = StreamCheck(pointer), bytearray(), bytearray()
        for at in range(0, len(stream), block):
            for part, content in check.take(stream[at : at + block]):
                raw += part
                out += content
        assert (bytes(out), bytes(raw)) == (CONTENT, stream)


def test_what_came_before_a_crash_is_verified_again_and_the_rest_is_fetched(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    kept = KeptFiles(tmp_path)
    with kept.arriving(pointer) as arriving:
        arriving.take(stream[: SECOND.stop + 77])
    with kept.arriving(pointer) as arriving:
        assert arriving.first == SECOND.stop
    part = next((tmp_path / "media").glob("*.part"))
    part.write_bytes(part.read_bytes()[:-5] + b"12345")
    with kept.arriving(pointer) as arriving:
        assert arriving.first == 0
    arrive(kept, stream, pointer)
    assert b"".join(kept.contents(pointer)) == CONTENT
    assert CONTENT[:50] not in kept.path(pointer.blob_id).read_bytes()


def test_a_saved_file_has_its_name_once_it_is_whole_and_replaces_nothing(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    kept, folder = KeptFiles(tmp_path / "profile"), tmp_path / "saved"
    folder.mkdir()
    arrive(kept, stream, pointer)
    first, second = kept.save(pointer, folder), kept.save(pointer, folder)
    assert [path.name for path in (first, second)] == ["notes.txt", "notes (2).txt"]
    assert first.read_bytes() == second.read_bytes() == CONTENT
    with pytest.raises(FileUnusable):
        kept.save(pointer, first)
    path = kept.path(pointer.blob_id)
    path.write_bytes(flipped(stream))
    with pytest.raises(ChunkRefused):
        kept.save(pointer, folder)
    assert sorted(each.name for each in folder.iterdir()) == ["notes (2).txt", "notes.txt"]


def test_only_the_id_of_a_blob_is_a_name_in_the_profile(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    for name in ("../key", "/etc/passwd", "key", "0000000000005-" + "x" * 32, ""):
        with pytest.raises(Rejected):
            kept.path(name)


def test_an_erased_file_leaves_nothing(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    kept = KeptFiles(tmp_path / "profile")
    arrive(kept, stream, pointer)
    kept.erase(pointer.blob_id)
    kept.erase(pointer.blob_id)
    assert list((tmp_path / "profile" / "media").iterdir()) == []
