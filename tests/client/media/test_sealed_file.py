"""A file is sealed piece by piece as it would be as a whole, and only while it is what it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightmail.client.media.sealed_file import SealedFile, chunk_at, look_at
from nightmail.client.media_errors import FileAltered, FileUnusable
from nightmail.e2ee.streams.stream import HEAD_BYTES, SEALED_CHUNK_BYTES, StreamOpener, StreamSealer
from tests.client.media.pointers import CONTENT, KEY, a_file, changed_since


@pytest.mark.parametrize("size", [0, 1, 1_023, 1_024, 65_535, 65_536, 65_537, 131_072, 300_000])
def test_pieces_of_any_size_are_the_stream_that_a_sealer_makes(tmp_path: Path, size: int) -> None:
    file = SealedFile(look_at(a_file(tmp_path, CONTENT[:size])), KEY)
    sealer = StreamSealer(KEY)
    whole = sealer.head + b"".join(chunk.data for chunk in sealer.chunks([CONTENT[:size]]))
    pieces = [file.piece(first, 1) for first in range(file.chunks)]
    assert b"".join(piece.data for piece in pieces) == whole == file.piece(0, file.chunks + 1).data
    assert len(whole) == file.size
    assert file.digest(b"".join(piece.digests for piece in pieces)) == sealer.digest
    assert b"".join(StreamOpener(KEY).content([whole])) == CONTENT[:size]


def test_a_file_that_was_changed_is_not_sealed_on(tmp_path: Path) -> None:
    path = a_file(tmp_path)
    seen = look_at(path)
    with pytest.raises(FileAltered):
        SealedFile(changed_since(seen), KEY).piece(0, 1)
    os.truncate(path, 10)
    os.utime(path, ns=(seen.changed_ns, seen.changed_ns))
    with pytest.raises(FileAltered):
        SealedFile(seen, KEY).piece(0, 1)


def test_what_is_no_file_is_not_sent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nowhere"):
        with pytest.raises(FileUnusable):
            look_at(path)


def test_only_the_beginning_of_a_chunk_is_a_place_to_go_on() -> None:
    places = [0, HEAD_BYTES, HEAD_BYTES + SEALED_CHUNK_BYTES, 1, HEAD_BYTES + 1, HEAD_BYTES + SEALED_CHUNK_BYTES - 1]
    assert [chunk_at(place) for place in places] == [0, 0, 1, None, None, None]
