"""The file of a backup: a head that wraps its key, then segments, each sealed and chained to all before it.

Knows:   how a file is written so that the former one is whole until the new one is: beside it, synced, renamed.
Touches: one file, and one beside it.
Never:   changes a byte of a file that is there; trusts a length that the file gives.

    head ‖ segment ‖ segment ‖ …          segment = length of the stream u64 ‖ nonce 16 ‖ stream

An increment copies the sealed bytes of the former file and adds a segment. That costs reading and writing the file
once, and needs no rule for a half-written end: a file that is cut anywhere but between segments is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nightmail.client.errors import BackupDamaged, BackupError, BackupTooNew
from nightmail.client.profile.key_places import sync_folder
from nightmail.e2ee.errors import BadEncoding, Rejected, UnknownVersion
from nightmail.e2ee.streams import backup
from nightmail.e2ee.streams.stream import StreamOpener, StreamSealer, digest_of

PIECE_BYTES = 1 << 20
LENGTH_BYTES = 8
BEFORE_BYTES = LENGTH_BYTES + backup.SEGMENT_NONCE_BYTES
"""What stands before the stream of a segment."""
SEGMENTS_MAX = 100_000


class Segment(NamedTuple):
    number: int
    """From 1."""
    at: int
    """Where its stream begins in the file."""
    length: int
    nonce: bytes
    link: bytes
    """The chain before it."""


class Walked(NamedTuple):
    """A file whose segments were counted and hashed. Whether they open, only the key tells."""

    path: Path
    head: bytes
    segments: tuple[Segment, ...]
    link: bytes
    """The chain after the last segment."""
    size: int

    def content(self, key: bytes, segment: Segment) -> Iterator[bytes]:
        """What is in a segment. Raises BackupDamaged, BackupError."""
        opener = StreamOpener(
            backup.segment_key(key, segment.link, segment.number, segment.nonce), sealed_bytes=segment.length
        )
        with _reading(self.path) as file:
            file.seek(segment.at)
            try:
                yield from opener.content(_pieces(file, segment.length))
            except UnknownVersion as error:
                raise BackupTooNew(f"{self.path} was written by a newer version of Nightmail") from error
            except Rejected as error:
                raise damaged(self.path) from error


def damaged(path: Path) -> BackupDamaged:
    return BackupDamaged(f"{path} is damaged, or parts of it are missing")


def head_in(path: Path) -> bytes:
    """Raises BackupDamaged, BackupTooNew, BackupError."""
    with _reading(path) as file:
        head = file.read(backup.HEAD_BYTES)
    try:
        backup.kind_of(head)
    except UnknownVersion as error:
        raise BackupTooNew(f"{path} was written by a newer version of Nightmail") from error
    except BadEncoding as error:
        raise BackupDamaged(f"{path} is not a backup") from error
    return head


def walk(path: Path) -> Walked:
    """Count and hash the segments. Raises BackupDamaged, BackupTooNew, BackupError."""
    head = head_in(path)
    link, segments = backup.first_link(head), list[Segment]()
    with _reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        at = len(head)
        while at < size:
            file.seek(at)
            before = file.read(BEFORE_BYTES)
            length, nonce = int.from_bytes(before[:LENGTH_BYTES], "big"), before[LENGTH_BYTES:]
            if len(before) < BEFORE_BYTES or length > size - at - BEFORE_BYTES or len(segments) >= SEGMENTS_MAX:
                raise damaged(path)
            segments.append(Segment(len(segments) + 1, at + BEFORE_BYTES, length, nonce, link))
            link = backup.next_link(link, length, nonce, digest_of(_pieces(file, length)))
            at += BEFORE_BYTES + length
    if not segments:
        raise damaged(path)
    return Walked(path, head, tuple(segments), link, size)


class SegmentWriter:
    """Writes a file with one more segment than `former`, or a new file with one. `former` stays until `finish`."""

    def __init__(self, path: Path, head: bytes, key: bytes, nonce: bytes, former: Walked | None) -> None:
        self._path, self._head, self._former, self._nonce = path, head, former, nonce
        self._beside = path.with_name(f".{path.name}.new")
        self._file: BinaryIO | None = None
        self.segments = len(former.segments) + 1 if former else 1
        self._link = former.link if former else backup.first_link(head)
        self._sealer = StreamSealer(backup.segment_key(key, self._link, self.segments, nonce))

    def begin(self) -> None:
        """Copy what was there. May take as long as copying the file. Raises BackupError."""
        with _writing(self._path):
            self._beside.unlink(missing_ok=True)
            made = os.open(self._beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(made, "w+b")
            if self._former is None:
                self._file.write(self._head)
            else:
                with _reading(self._former.path) as file:
                    for piece in _pieces(file, self._former.size):
                        self._file.write(piece)
            self._file.write(bytes(LENGTH_BYTES) + self._nonce)
            self._file.write(self._sealer.head)

    def steps(self, content: Iterable[bytes]) -> Iterator[None]:
        """Seal the content and write it, a chunk at each step. Raises BackupError."""
        assert self._file is not None
        for chunk in self._sealer.chunks(content):
            with _writing(self._path):
                self._file.write(chunk.data)
            yield

    def finish(self) -> Walked:
        """Make it durable, and put it in the place of the former one. Raises BackupError."""
        assert self._file is not None
        with _writing(self._path):
            size = self._file.tell()
            at = (self._former.size if self._former else len(self._head)) + BEFORE_BYTES
            length = size - at
            self._file.seek(at - BEFORE_BYTES)
            self._file.write(length.to_bytes(LENGTH_BYTES, "big"))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._beside.replace(self._path)
            sync_folder(self._path.parent)
        segment = Segment(self.segments, at, length, self._nonce, self._link)
        earlier = self._former.segments if self._former else ()
        link = backup.next_link(self._link, length, self._nonce, self._sealer.digest)
        return Walked(self._path, self._head, (*earlier, segment), link, size)

    def abandon(self) -> None:
        """The former file stays. May be called after anything."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                self._beside.unlink(missing_ok=True)


class _writing:  # noqa: N801  # reads like a statement
    """Turns what the system says into a sentence about the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise BackupError(f"{self._path} cannot be written: {error.strerror}") from error


def _reading(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}") from error


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    """So many bytes of a file, or fewer if it ends."""
    while length > 0 and (piece := file.read(min(length, PIECE_BYTES))):
        length -= len(piece)
        yield piece
