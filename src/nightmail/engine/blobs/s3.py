"""Blobs as objects of one bucket of S3. Until one is whole it grows in a folder of this machine.

Knows:   where a blob is: in the folder while it grows, in the bucket once it is whole.
Touches: both, on the threads that each has.
Never:   calls a blob whole that the bucket does not have; lets a peer or a log see the name of an object.

An object cannot grow, and the parts of a multipart upload are known only to the process that began it. So the folder
confirms what arrives, and `finish` moves the whole: a crash in between leaves it in the folder, with all its bytes, and
`finish` is repeated. An upload goes on at the machine where it began; at another one it begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import BinaryIO

import obstore
from msgspec import Struct
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from nightmail.engine.ports import Post
from nightmail.engine.worker import Execute
from nightmail.model.blobs import BlobId

from .folder import FolderBlobs
from .folder import said as said_of_folder
from .jobs import BlobJobs
from .port import BlobFailed, Held

PART_BYTES = 8 << 20
"""A blob of this size or less is put in one go, and only if there is none yet."""
PARTS_AT_ONCE = 4
PIECE_BYTES = 1 << 20
CONNECT_S, REQUEST_S, RETRY_S = 3, 30, 10
RETRIES = 2
"""Those who upload or fetch repeat what failed, so a store that is away is said soon."""


class S3Access(Struct, frozen=True):
    """Where the bucket is, and what opens it."""

    bucket: str
    endpoint: str = ""
    """Empty: that of AWS in the region."""
    region: str = ""
    key_id: str = ""
    secret_key: str = ""
    """Empty: as the environment and the machine say (AWS_ACCESS_KEY_ID, an instance's role)."""

    def __repr__(self) -> str:
        return f"<the bucket {self.bucket!r}>"

    def store(self) -> S3Store:
        given = {
            "endpoint": self.endpoint, "region": self.region or "us-east-1", "access_key_id": self.key_id,
            "secret_access_key": self.secret_key,
        }  # fmt: skip
        return S3Store(
            self.bucket,
            config={name: value for name, value in given.items() if value},  # pyright: ignore[reportArgumentType]
            client_options={
                "timeout": timedelta(seconds=REQUEST_S), "connect_timeout": timedelta(seconds=CONNECT_S),
                "allow_http": self.endpoint.startswith("http://"),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_S)},
        )  # fmt: skip


class S3Blobs:
    """`Blobs`."""

    def __init__(self, access: S3Access, growing: FolderBlobs, *, post: Post, execute: Execute) -> None:
        self._store, self._growing = access.store(), growing
        self._jobs = BlobJobs(post, execute, (BaseError, OSError), _said)

    def held(self, blob: BlobId, done: Callable[[Held | BlobFailed | None], None]) -> None:
        def looked(found: Held | BlobFailed | None) -> None:
            if found is None:
                self._jobs.run(lambda: self._held(blob), done)
            else:
                # With all its bytes, too, it is not whole before the bucket has it.
                done(found if isinstance(found, BlobFailed) else Held(found.size, is_whole=False))

        self._growing.held(blob, looked)

    def write(self, blob: BlobId, offset: int, data: bytes, done: Callable[[BlobFailed | None], None]) -> None:
        self._growing.write(blob, offset, data, done)

    def confirm(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        self._growing.confirm(blob, size, done)

    def finish(self, blob: BlobId, size: int, done: Callable[[BlobFailed | None], None]) -> None:
        def looked(found: Held | BlobFailed | None) -> None:
            if isinstance(found, BlobFailed):
                done(found)
            elif found is None:
                self._jobs.run(lambda: self._held(blob), in_bucket)
            else:
                self._growing.finish(blob, size, grown)

        def in_bucket(found: Held | BlobFailed | None) -> None:
            if isinstance(found, BlobFailed) or found == Held(size, is_whole=True):
                done(found if isinstance(found, BlobFailed) else None)
            else:
                self._growing.finish(blob, size, grown)  # it is empty, or its bytes are missing: that is said there

        def grown(failed: BlobFailed | None) -> None:
            if failed:
                done(failed)
            else:
                self._jobs.run(lambda: self._put(blob, size), moved)

        def moved(failed: BlobFailed | None) -> None:
            if failed:
                done(failed)
            else:
                self._growing.remove(blob, done)

        self._growing.held(blob, looked)

    def read(self, blob: BlobId, offset: int, limit: int, done: Callable[[bytes | BlobFailed | None], None]) -> None:
        self._jobs.run(lambda: self._read(blob, offset, limit), done)

    def remove(self, blob: BlobId, done: Callable[[BlobFailed | None], None]) -> None:
        def removed(failed: BlobFailed | None) -> None:
            if failed:
                done(failed)
            else:
                self._jobs.run(lambda: obstore.delete(self._store, str(blob)), done)

        self._growing.remove(blob, removed)

    def names(
        self, after: BlobId | None, limit: int, done: Callable[[Sequence[BlobId] | BlobFailed], None]
    ) -> None:  # fmt: skip
        def listed(growing: Sequence[BlobId] | BlobFailed) -> None:
            if isinstance(growing, BlobFailed):
                done(growing)
            else:
                self._jobs.run(lambda: sorted({*growing, *self._names(after, limit)}, key=str)[:limit], done)

        self._growing.names(after, limit, listed)

    # --- on a thread --------------------------------------------------------------------------

    def _held(self, blob: BlobId) -> Held | None:
        try:
            return Held(obstore.head(self._store, str(blob))["size"], is_whole=True)
        except FileNotFoundError:
            return None

    def _put(self, blob: BlobId, size: int) -> BlobFailed | None:
        with self._growing.open_whole(blob) as file:
            if size > PART_BYTES:
                obstore.put(self._store, str(blob), _pieces(file), chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
            else:
                # It may be there: a crash, or a lost answer, came after it.
                with suppress(AlreadyExistsError):
                    obstore.put(self._store, str(blob), file.read(), mode="create")
        return None if self._held(blob) == Held(size, is_whole=True) else BlobFailed("S3 has not kept what was put")

    def _read(self, blob: BlobId, offset: int, limit: int) -> bytes | None:
        try:
            if limit:
                return bytes(obstore.get_range(self._store, str(blob), start=offset, length=limit))
        except FileNotFoundError:
            return None
        except BaseError:
            # Behind its end S3 has no range to give.
            if (held := self._held(blob)) is None or offset < held.size:
                raise
        return b"" if self._held(blob) else None

    def _names(self, after: BlobId | None, limit: int) -> list[BlobId]:
        found: list[BlobId] = []
        pages = obstore.list(  # pyright: ignore[reportUnknownMemberType]  # of forms that are not asked for
            self._store, offset=str(after) if after else None, chunk_size=limit
        )
        for page in pages:
            for meta in page:
                try:
                    found.append(BlobId.parse(meta["path"]))
                except ValueError:
                    continue  # not ours
            if len(found) >= limit:
                break
        return found


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _said(error: Exception) -> BlobFailed:
    """The texts of these errors name objects, so they are not repeated."""
    if isinstance(error, FileNotFoundError):
        return BlobFailed("S3 has no such bucket")
    if isinstance(error, OSError):
        return said_of_folder(error)
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        return BlobFailed("S3 does not accept the credentials, or they may not do this")
    return BlobFailed(f"S3 cannot be reached, or does not serve ({type(error).__name__})")
