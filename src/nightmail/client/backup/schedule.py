"""What a profile remembers of its backup: the key, where it goes, how often, and how it ended the last time.

Knows:   one errand in the store, which is sealed at rest.
Never:   remembers the passphrase or the recovery code: the head wraps the key for them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from nightmail.client.store.port import Store
from nightmail.e2ee.streams.backup import WrappedKey
from nightmail.model.limits import DAY_MS

ERRAND = "backup"
EVERY_MS_MIN, EVERY_MS_MAX = 60_000, 365 * DAY_MS


class PendingPart(Struct, frozen=True):
    """A part of the file that is on its way to the server."""

    blob: str
    start: int
    end: int


class ServerCopy(Struct, frozen=True):
    """What the server has of the file."""

    id: bytes
    sent: int = 0
    """Bytes of the file, from its beginning on."""
    blobs: tuple[str, ...] = ()
    pending: PendingPart | None = None
    retired: tuple[str, ...] = ()
    """Blobs of the backup that this one replaces: to be removed once this one is whole there."""

    @property
    def all_blobs(self) -> tuple[str, ...]:
        return (*self.blobs, *([self.pending.blob] if self.pending else []), *self.retired)


class BackupState(Struct, frozen=True):
    head: bytes
    key: bytes
    file: str = ""
    """The whole path of the newest one; empty: none was made yet."""
    every_ms: int = 0
    """How often a running client makes one; 0: only when asked."""
    at: int = 0
    messages: int = 0
    segments: int = 0
    size: int = 0
    whole_size: int = 0
    """How long the file was when it was last written as a whole."""
    link: bytes = b""
    """The chain after its last segment: a file with another one was written by somebody else."""

    server: ServerCopy | None = None
    """The backup is for the server; None: it is for the person to keep."""

    @property
    def owes(self) -> bool:
        """Whether the server lacks something of the newest one."""
        return self.server is not None and (self.server.sent < self.size or bool(self.server.retired))

    def __repr__(self) -> str:
        return f"<backup to {self.file!r}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("file", self.file)]

    @property
    def due(self) -> int | None:
        """When a running client makes the next one."""
        if not self.every_ms or not self.file:
            return None
        return self.at if self.owes else self.at + self.every_ms


_encode = msgspec.msgpack.Encoder().encode
_state = msgspec.msgpack.Decoder(BackupState).decode


def state_in(store: Store) -> BackupState | None:
    """None: this profile has no backup."""
    state = store.errand(ERRAND)
    return _state(state) if state else None


def put_state(store: Store, state: BackupState) -> None:
    store.put_errand(ERRAND, _encode(state))


def new_state(wrapped: WrappedKey) -> BackupState:
    return BackupState(wrapped.head, wrapped.key)
