"""A backup on the server: its file in parts, each a blob of the account.

Knows:   the form of a part, as docs/e2ee.md has it, and which parts make a file.
Never:   believes the server that the parts are right: the file that they make is verified like any other.

    part = `nmpart1` ‖ 0 ‖ id of the backup 16 ‖ offset in the file u64 ‖ bytes of the file from there on

A backup that grows adds a part. One that is written again as a whole has another id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from nightmail.client.media.blob_http import KeptBackup

HEAD = struct.Struct(">8s16sQ")
MARK = b"nmpart1\0"
ID_BYTES = 16


class Part(NamedTuple):
    blob: KeptBackup
    backup: bytes
    start: int

    @property
    def size(self) -> int:
        """Of its bytes of the file."""
        return self.blob.size - HEAD.size


class ServerBackup(NamedTuple):
    """One backup, as the server shows it. Only what opens it can say from when it is."""

    id: str
    at: int
    """When its newest part arrived, as the server says."""
    parts: tuple[Part, ...]
    """Those that make the file, in their order."""
    blobs: tuple[str, ...]
    """All that belong to it, the first part first."""

    @property
    def size(self) -> int:
        """0: its beginning is missing, so it cannot be restored."""
        return sum(part.size for part in self.parts)


def head_of_part(backup: bytes, start: int) -> bytes:
    return HEAD.pack(MARK, backup, start)


def part_in(blob: KeptBackup, first: bytes) -> Part | None:
    """By the first bytes of a blob; None: it is no part of a backup."""
    if len(first) < HEAD.size:
        return None
    mark, backup, start = HEAD.unpack_from(first)
    return Part(blob, backup, start) if mark == MARK else None


def together(parts: Sequence[Part]) -> list[ServerBackup]:
    """The backups that these parts make, the newest last."""
    found: dict[bytes, list[Part]] = {}
    for part in parts:
        found.setdefault(part.backup, []).append(part)
    made = [_backup(backup, sorted(some, key=lambda part: part.start)) for backup, some in found.items()]
    return sorted(made, key=lambda each: each.at)


def _backup(backup: bytes, some: list[Part]) -> ServerBackup:
    file: list[Part] = []
    for part in some:
        if part.start == sum(each.size for each in file):
            file.append(part)
    newest = max(part.blob.completed_at for part in some)
    return ServerBackup(backup.hex(), newest, tuple(file), tuple(part.blob.id for part in some))
