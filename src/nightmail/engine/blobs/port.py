"""What holds the bytes of blobs. `ports.py` says what holds for every port.

A blob grows from its beginning, in pieces. What was confirmed is durable and counts after a crash; what was written
and not confirmed does not, and is written again. Once it is whole it never changes.

One piece of a blob is written at a time; blobs do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId


class Held(NamedTuple):
    """What there is of a blob."""

    size: int
    """Bytes that are confirmed."""
    is_whole: bool


class BlobFailed(Struct, frozen=True):
    """It did not work, or nobody knows; `why` is for the operator. The same call may be repeated."""

    why: str
    is_full: bool = False
    """There is no space for it."""


class Blobs(Protocol):
    def held(self, blob: BlobId, done: Callable[[Held | BlobFailed | None], None]) -> None:
        """None: nothing is there."""
        ...

    def write(self, blob: BlobId, offset: int, data: bytes, done: Callable[[BlobFailed | None], None]) -> None:
        """Put a piece behind what is confirmed, and what was written since."""
        ...

    def confirm(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        """Make durable what was written up to `size`. Whatever was written beyond it does not count."""
        ...

    def finish(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        """The same, and it is whole. May be repeated, also after a crash, and for one that was whole before."""
        ...

    def read(self, blob: BlobId, offset: int, limit: int, done: Callable[[bytes | BlobFailed | None], None]) -> None:
        """At most `limit` bytes from `offset` on, and no fewer unless it ends there. None: there is no such blob, or
        it is not whole."""
        ...

    def remove(self, blob: BlobId, done: Callable[[BlobFailed | None], None]) -> None:
        """Whether it is whole or not, or not there at all."""
        ...

    def names(
        self, after: BlobId | None, limit: int, done: Callable[[Sequence[BlobId] | BlobFailed], None]
    ) -> None:  # fmt: skip
        """The first `limit` blobs behind `after`, whole or not, in the order of their names."""
        ...


class BlobRecords(Protocol):
    """Answers what is asked about blobs; their bytes are with `Blobs`. `then` is called once."""

    def blob(self, name: BlobId, device: int, then: Callable[[BlobSeen | None], None]) -> None:
        """As this device sees it, or the server itself; None: it may not, or there is none."""
        ...

    def backups(self, account: int, then: Callable[[Sequence[tuple[BlobId, BlobSeen]]], None]) -> None:
        """Those of the account that are whole, in the order in which they were begun."""
        ...
