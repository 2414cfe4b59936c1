"""Opening a backup: every byte of it is verified, and every part understood, before anything is used.

Knows:   which error is whose: a wrong code, a damaged file, a newer program.
Touches: the file, for reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nightmail.client.errors import BackupLocked, BackupTooNew
from nightmail.e2ee.errors import BadRecoveryCode, Rejected, UnknownVersion, WrongBackupSecret
from nightmail.e2ee.streams import backup
from nightmail.e2ee.streams.backup import BackupSecret

from .container import Segment, Walked, damaged, head_in, walk
from .forms import BackupHead, BackupPart, head_of, part_of, split
from .newest import lineage_of


class BackupInfo(NamedTuple):
    """What a person should see before anything is restored."""

    file: Path
    handle: str
    account: int
    at: int
    """When it was made. An older copy of the file is a backup like any other: only this tells."""
    messages: int
    size: int
    segments: int
    kept_by: str
    """What opens it: "passphrase" or "recovery code"."""


class OpenBackup:
    """A backup that was verified from beginning to end."""

    def __init__(self, walked: Walked, key: bytes) -> None:
        self._walked, self._key = walked, key
        heads = [self._verify(segment) for segment in walked.segments]
        self.lineage = lineage_of(walked.head)
        newest = heads[-1]
        if any((head.account, head.is_whole) != (newest.account, at == 0) for at, head in enumerate(heads)):
            raise damaged(walked.path)
        self.info = BackupInfo(
            walked.path, newest.handle, newest.account, newest.at, newest.messages, walked.size, len(heads),
            kept_by(walked.head),
        )  # fmt: skip

    def _verify(self, segment: Segment) -> BackupHead:
        items = self._items(segment)
        head = next(items)
        for _ in items:
            pass
        assert isinstance(head, BackupHead)
        return head

    def parts(self) -> Iterator[BackupPart]:
        """Everything in it, the newest segment first: what comes first is what counts. Raises BackupDamaged if the
        file changed meanwhile."""
        for segment in reversed(self._walked.segments):
            for item in self._items(segment):
                if isinstance(item, BackupPart):
                    yield item

    def _items(self, segment: Segment) -> Iterator[BackupHead | BackupPart]:
        path, is_first = self._walked.path, True
        try:
            for data in split(self._walked.content(self._key, segment)):
                yield head_of(data) if is_first else part_of(data)
                is_first = False
        except UnknownVersion as error:
            raise BackupTooNew(f"{path} was written by a newer version of Nightmail") from error
        except Rejected as error:
            raise damaged(path) from error
        if is_first:
            raise damaged(path)


def kept_by(head: bytes) -> str:
    return backup.KINDS[backup.kind_of(head)]


def needed_for(file: Path) -> str:
    """What opens this file: "passphrase" or "recovery code". Raises BackupDamaged, BackupTooNew, BackupError."""
    return kept_by(head_in(file))


def open_backup(file: Path, secret: BackupSecret) -> OpenBackup:
    """Verify all of it. Takes a while. Raises BackupLocked, BackupDamaged, BackupTooNew, BackupError."""
    walked = walk(file)
    try:
        key = backup.unwrap(walked.head, secret)
    except (WrongBackupSecret, BadRecoveryCode) as error:
        raise BackupLocked(str(error)) from error
    return OpenBackup(walked, key)


def open_own(file: Path, head: bytes, key: bytes) -> OpenBackup | None:
    """Likewise, by the key that the profile remembers; None: it is that of another backup."""
    walked = walk(file)
    return OpenBackup(walked, key) if walked.head == head else None
