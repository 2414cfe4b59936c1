"""What a client keeps of files, besides the messages that name them.

Knows:   the form of each errand.
Touches: errands of the store, in whatever transaction is open.
Never:   shows a key or a path in a repr.

    file {message}                    what of its file is on this device
    file-up {message}                 an upload that is not finished
    file-digests {message} {chunk}    the digests of chunks that were sealed, from this chunk on
    file-fetch {message}              its file is to be fetched
    blob-verified {blob}              this device has all of it, and the server has not confirmed that it heard so
    blob-end {blob}                   an own blob whose message will not be sent; holds the message's id
    file-erase {blob}                 the sealed copy on this disk is to be deleted, and the part of it that this names
    file-saving {message}             the path of what was written of it where it is being saved
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
from msgspec import Struct

from nightmail.client.store.port import Store
from nightmail.model.words import Lane

FILE, UPLOAD, DIGESTS = "file ", "file-up ", "file-digests "
FETCH, VERIFIED, ENDING, ERASING = "file-fetch ", "blob-verified ", "blob-end ", "file-erase "
SAVING = "file-saving "


class FileState(IntEnum):
    """What of a message's file is on this device."""

    ABSENT = 0
    """Nothing; it can be fetched."""
    UPLOADING = 1
    """It is being sent from here."""
    UPLOADED = 2
    """It was sent from here, and is where it was."""
    WANTED = 3
    """It is being fetched, or will be."""
    KEPT = 4
    """All of it, sealed, in the profile."""
    SAVED = 5
    """All of it was saved outside the profile, and nothing is kept in it."""
    GONE = 6
    """The server had it no more when it was asked for."""
    REFUSED = 7
    """What the server handed out was not what the author sealed."""
    FAILED = 8
    """It was not sent."""


class FileRow(Struct, frozen=True):
    state: FileState
    reason: str = ""
    """A word: why it was refused, or has failed."""
    path: str = ""
    """Where it was sent from, or saved last."""

    def __repr__(self) -> str:
        return f"<file: {self.state.name.lower()}>"


class UploadRow(Struct, frozen=True, kw_only=True):
    """A file on its way to the server. It is here before anything of it leaves."""

    path: str
    size: int
    changed_ns: int
    """When the file was last changed: if it is again, it is not sent."""
    key: bytes
    lane: Lane
    blob: str = ""
    """Empty: not begun."""

    def __repr__(self) -> str:
        return f"<upload of {self.size} bytes>"


_encode = msgspec.msgpack.Encoder().encode
_file = msgspec.msgpack.Decoder(FileRow).decode
_upload = msgspec.msgpack.Decoder(UploadRow).decode


class MediaRows:
    def __init__(self, store: Store) -> None:
        self._store = store

    # --- what is here ---------------------------------------------------------------------------

    def file(self, message_id: str) -> FileRow:
        state = self._store.errand(FILE + message_id)
        return FileRow(FileState.ABSENT) if state is None else _file(state)

    def put_file(self, message_id: str, row: FileRow) -> None:
        self._store.put_errand(FILE + message_id, _encode(row))
        if row.state is FileState.WANTED:
            self.put_due(FETCH, message_id)
        else:
            self.drop_due(FETCH, message_id)

    def drop_file(self, message_id: str) -> None:
        self._store.drop_errand(FILE + message_id)
        self.drop_due(FETCH, message_id)

    def files(self) -> list[str]:
        """The messages of whose files something is known, oldest first."""
        return self._names(FILE)

    # --- uploads --------------------------------------------------------------------------------

    def upload(self, message_id: str) -> UploadRow | None:
        state = self._store.errand(UPLOAD + message_id)
        return None if state is None else _upload(state)

    def put_upload(self, message_id: str, row: UploadRow) -> None:
        self._store.put_errand(UPLOAD + message_id, _encode(row))

    def uploads(self) -> list[str]:
        return self._names(UPLOAD)

    def put_digests(self, message_id: str, first: int, digests: bytes) -> None:
        self._store.put_errand(f"{DIGESTS}{message_id} {first:08x}", digests)

    def digests(self, message_id: str) -> bytes:
        """Of all chunks that were sealed, in their order."""
        names = self._store.errands(f"{DIGESTS}{message_id} ")
        return b"".join(self._store.errand(name) or b"" for name in names)

    def drop_digests(self, message_id: str) -> None:
        for name in self._store.errands(f"{DIGESTS}{message_id} "):
            self._store.drop_errand(name)

    def drop_upload(self, message_id: str) -> None:
        self._store.drop_errand(UPLOAD + message_id)
        self.drop_digests(message_id)

    # --- what is to be done ---------------------------------------------------------------------

    def put_due(self, what: str, name: str, state: str = "") -> None:
        self._store.put_errand(what + name, state.encode())

    def due(self, what: str) -> list[str]:
        return self._names(what)

    def due_state(self, what: str, name: str) -> str:
        return (self._store.errand(what + name) or b"").decode()

    def drop_due(self, what: str, name: str) -> None:
        if self._store.errand(what + name) is not None:
            self._store.drop_errand(what + name)

    def _names(self, prefix: str) -> list[str]:
        return [name.removeprefix(prefix) for name in self._store.errands(prefix)]
