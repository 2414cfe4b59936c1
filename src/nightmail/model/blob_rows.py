"""What is remembered of blobs; their bytes are elsewhere. `rows.py` says what holds for every row."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct, field

PAGE_DEVICES = 256
PAGE_BITS = 7
"""An audience has at most 2 ** PAGE_BITS pages."""


class Purpose(IntEnum):
    """What a blob is for. The numbers are on disk: only ever add."""

    MEDIA = 0
    """Fetched by those whom its owner names; ends when the last of them has it, or after a time."""
    BACKUP = 1
    """For nobody but its owner, who ends it."""


class Blob(Struct, array_like=True):
    """One blob, on its owner's shard."""

    secret: bytes
    purpose: Purpose
    size: int
    since: int
    """When its present life began, by elapsed time: it was begun, or it became whole."""
    since_at: int
    """Likewise, by the shard's time."""
    life_ms: int
    """It ends so long after that; 0: never."""
    is_whole: bool = False
    look: int = 0
    """The moment at which it is looked at; 0: none is set."""
    devices: int = 0
    """How many are named in its audience."""
    verified: int = 0
    """Of these, how many have all of it."""

    @property
    def pages(self) -> int:
        return -(-self.devices // PAGE_DEVICES)


class AudiencePage(Struct, array_like=True):
    """A part of a blob's audience."""

    devices: dict[int, bool] = field(default_factory=dict)
    """Device → whether it has verified the whole."""


class AccountBlobs(Struct, array_like=True):
    """What an account's blobs take."""

    media_bytes: int = 0
    backup_bytes: int = 0
    files: int = 0
    uploads: int = 0
    """Of these, those that are not whole yet."""
    backups: list[bytes] = field(default_factory=list)
    """The secrets of its backups, in the order in which they were begun."""


class BlobSeen(Struct, frozen=True):
    """A blob, as it is shown to somebody who may see it."""

    purpose: Purpose
    size: int
    is_whole: bool
    since_at: int
    ends_at: int
    """By the shard's time; 0: never."""


def page_number(owner: int, page: int) -> int:
    """The first number of the key of an audience's page; the second one is the blob's."""
    return owner << PAGE_BITS | page
