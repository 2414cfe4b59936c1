"""Files, for an app: the methods of `Client` that are about them.

Knows:   what a person may mean by a file and by a place for one.
Never:   decides anything about a message: the machine does.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path

from msgspec import Struct

from nightmail.e2ee.content import Content
from nightmail.e2ee.streams.media import BLOB_BYTES, DIGEST_BYTES, SIZE_MAX, MediaPointer, encode_pointer
from nightmail.e2ee.streams.stream import KEY_BYTES
from nightmail.model.ids import MESSAGE_ID
from nightmail.model.words import Kind, Lane

from .errors import Misused
from .groups.group import Group
from .limits import ClientLimits
from .media.names import sendable_name, type_of
from .media.rows import FileRow, FileState, MediaRows
from .media.sealed_file import LocalFile, look_at
from .media.thumbnails import thumbnail_of
from .media.worker import MediaWorker
from .media_errors import FileUnusable, OtherBlob
from .messages import Message
from .receipt import Receipt
from .schedule_client import ScheduleClient
from .threads import in_thread


class SharedFile(Struct, frozen=True):
    """The file of a message, and what of it is on this device."""

    message: Message
    pointer: MediaPointer
    state: FileState
    reason: str
    """A word: why it was refused, or has failed."""
    path: str
    """Where it was sent from, or saved last; empty: neither."""


class MediaClient(ScheduleClient):
    """A part of `Client`."""

    _media: MediaWorker
    limits: ClientLimits

    @abstractmethod
    def _named(self, message: Message) -> Message: ...

    async def send_file(
        self, to: str | int | Group, path: str | os.PathLike[str], *, caption: str = "", name: str = "",
        media_type: str = "", reply_to_message_id: str = "", lane: Lane = Lane.NORMAL, life_ms: int | None = None,
    ) -> Receipt:  # fmt: skip
        """Queue a file. When this returns, that is durable here: it is sealed while it is uploaded, and then its
        message is sent. Works offline, and goes on after a restart; the file must stay as it is until then.

        `FileProgress` tells how far it is, `FileChanged` when it is at the server; `give_up` takes it back. The receipt
        is that of the message: it fails with `blob_quota`, `blob_too_large`, `file_changed`, `file_unusable`,
        `given_up` and others. `name` and `media_type` are otherwise those of the path. A small picture of it goes along
        where Pillow is installed. Raises FileUnusable, TooLarge, Misused, GroupError.
        """
        if reply_to_message_id and not MESSAGE_ID.match(reply_to_message_id):
            raise Misused("a reply names the message it answers by its id, and that is no id of a message")
        driver = self._open_driver()
        file = await in_thread(lambda: look_at(path))
        if file.size > SIZE_MAX:
            raise FileUnusable(file.path, "it is too large")
        name = sendable_name(name or Path(file.path).name)
        kind = media_type or type_of(name)
        thumbnail = await in_thread(lambda: thumbnail_of(file.path)) if kind.startswith("image/") else b""
        pointer = self._pointer(file, name, kind, thumbnail)
        content = Content(Kind.MEDIA, caption or None, reply_to_message_id or None, encode_pointer(pointer))
        peer, handle = await self._whom(to)
        with driver.working() as machine:
            if handle:
                machine.learn_handle(peer, handle, driver.clock())
            message = machine.send_file(peer, content, driver.clock(), file=file, lane=lane, life_ms=life_ms)
        receipt = self._waiters.follow(Receipt(message.id))
        await driver.committed()
        return receipt

    def _pointer(self, file: LocalFile, name: str, media_type: str, thumbnail: bytes) -> MediaPointer:
        """To a file that has no place at the server yet."""
        nothing = bytes(BLOB_BYTES), bytes(KEY_BYTES), bytes(DIGEST_BYTES)
        return MediaPointer(self.identity.account, *nothing, file.size, name, media_type, thumbnail)

    async def save_file(
        self, message: Message | str, path: str | os.PathLike[str] = ".", *, overwrite: bool = False
    ) -> Path:
        """Save the file of a message: in a folder, under its own name or a free one like it; or at this path. It is
        fetched if it is not here: above `fetch_bytes`, straight to this place, and where an earlier attempt stopped.
        Where it is now.

        It has its name only when all of it has verified. Raises FileRefused, FileGone, FileUnusable, HttpError,
        Misused.
        """
        found, row = self._fetchable(message)
        to = _place(path, overwrite=overwrite)
        assert found.media is not None
        if found.media.size > self.limits.fetch_bytes and row.state not in (FileState.WANTED, FileState.KEPT):
            return await self._media.save_directly(found.id, to, overwrite=overwrite)
        await self.fetch_file(found.id)
        return await self._media.save(found.id, to, overwrite=overwrite)

    async def fetch_file(self, message: Message | str) -> None:
        """Have the file of a message in the profile, sealed. Raises as `save_file` does."""
        found, row = self._fetchable(message)
        if row.state is FileState.KEPT:
            return
        driver = self._open_driver()
        with driver.working() as machine:
            machine.media(driver.clock()).want(found)
        await driver.committed()
        await self._media.fetched(found.id)

    def files(self, peer: str | int | Group | None = None) -> list[SharedFile]:
        """The files of messages, with one peer or with all, oldest first."""
        rows, account = MediaRows(self._store), None if peer is None else self._account(peer)
        found = [self.file(message_id) for message_id in rows.files()]
        return [each for each in found if each is not None and account in (None, each.message.peer)]

    def file(self, message: Message | str) -> SharedFile | None:
        """The file of a message; None: it has none."""
        message_id = message if isinstance(message, str) else message.id
        found = self._store.message(message_id)
        if found is None or (pointer := found.media) is None:
            return None
        row: FileRow = MediaRows(self._store).file(message_id)
        return SharedFile(self._named(found), pointer, row.state, row.reason, row.path)

    def _fetchable(self, message: Message | str) -> tuple[Message, FileRow]:
        """A message whose file can be asked for. Raises Misused, OtherBlob."""
        found = self._store.message(message if isinstance(message, str) else message.id)
        if found is None or found.media is None:
            raise Misused("no message with a file has that id")
        if not found.media.is_placed:
            raise Misused("the file is still being sent")
        row = MediaRows(self._store).file(found.id)
        if row.state is FileState.REFUSED and row.reason == "other_owner":
            raise OtherBlob("it belongs to somebody else than the author of the message")
        return found, row


def _place(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Raises FileUnusable."""
    to = Path(path).expanduser().absolute()
    if not to.is_dir() and to.exists() and not overwrite:
        raise FileUnusable(str(to), "it exists already")
    return to
