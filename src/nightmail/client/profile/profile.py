"""A profile: one folder, one device, one process at a time, sealed at rest.

    lock            the process that has it; the kernel releases it when the process ends, however it ends
    key             the database's key, sealed by a passphrase, a key file or the keyring (keybox.py)
    settings        the numbers of limits.py that the user changed (settings.py); need not exist
    nightmail.db    everything else, sealed page by page with its write-ahead log

Touches: the folder (readable by nobody else), and what is in it.
Never:   opens or makes a database that is not sealed.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from nightmail.client.errors import ProfileDamaged, ProfileError, ProfileInUse
from nightmail.client.store.sqlite import NAME, SqliteStore

from . import keybox
from .key_places import make_folder
from .protection import KeyFile, Secret

LOCK_NAME = "lock"


class Profile:
    """A profile folder, created if it is not there, and locked until `close`."""

    def __init__(self, path: Path, secret: Secret | None = None) -> None:
        """`secret` protects a new profile, and opens one with a passphrase; a key file and the keyring are found.

        Raises ProfileInUse, ProfileLocked, WrongSecret.
        """
        self.path = path
        try:
            make_folder(path)
            os.chmod(path, 0o700)
            self._lock: int | None = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ProfileError(f"{path} cannot be used as a profile: {error.strerror}") from error
        try:
            self._take()
            self._key = self._open_box(secret)
            self.store = SqliteStore(path, self._key)
        except BaseException:
            self._release()
            raise

    def _take(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            whom = f"process {holder}" if holder else "another process"
            raise ProfileInUse(f"the profile {self.path} is in use by {whom}") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)

    def _open_box(self, secret: Secret | None) -> bytes:
        if (key := keybox.open_box(self.path, secret)) is not None:
            return key
        if (self.path / NAME).exists():
            raise ProfileDamaged(
                f"the profile {self.path} has a database but no `key` file: it was never sealed, or the file was lost"
            )
        # The box is durable before the database is: a crash between them leaves nothing that cannot be opened.
        key = os.urandom(keybox.KEY_BYTES)
        keybox.make_box(self.path, secret or KeyFile(), key)
        return key

    def keep_by(self, secret: Secret) -> None:
        """Protect the key with this secret from now on; the former secret no longer opens the profile."""
        keybox.make_box(self.path, secret, self._key)

    def close(self) -> None:
        """May be called again."""
        if self._lock is not None:
            self.store.close()
            self._release()

    def _release(self) -> None:
        # The file stays: removing it would let two processes lock two different files.
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
