"""What opens a backup, for apps: a new recovery code, one that was typed, or a passphrase."""

from __future__ import annotations

from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.streams.backup import BY_CODE, BY_PASSPHRASE, KINDS, BackupSecret, new_code

RECOVERY_CODE, PASSPHRASE = KINDS[BY_CODE], KINDS[BY_PASSPHRASE]


def new_recovery_code() -> BackupSecret:
    """Twelve words in its `text`, to be shown to the person once."""
    return new_code(SYSTEM)


def as_typed(kept_by: str, text: str) -> BackupSecret:
    """`kept_by` is what opens the backup: `RECOVERY_CODE` or `PASSPHRASE` (`looking.needed_for`)."""
    return BackupSecret(BY_CODE if kept_by == RECOVERY_CODE else BY_PASSPHRASE, text)


def is_code(secret: BackupSecret) -> bool:
    return secret.kind == BY_CODE


__all__ = ["PASSPHRASE", "RECOVERY_CODE", "BackupSecret", "as_typed", "is_code", "new_recovery_code"]
