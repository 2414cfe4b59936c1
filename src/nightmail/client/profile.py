"""A profile: one folder, one device, one process at a time.

Knows:   the lock file; the kernel lets go of it when the process ends, however it ends.
Touches: the folder (readable by nobody else), the lock file, and the store in it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import ProfileError, ProfileInUse
from .sqlite_store import SqliteStore

LOCK_NAME = "lock"


class Profile:
    """Create it if need be, and hold it until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(path, 0o700)
            self._lock: int | None = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ProfileError(f"{path} cannot be used as a profile: {error.strerror}") from error
        try:
            self._take()
            self.store = SqliteStore(path)
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
