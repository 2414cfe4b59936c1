"""The data folder, held by one process at a time.

Knows:   the lock file; the kernel releases the lock when the process ends, however it ends. The file's date is the
         newest time that a server went by on this folder.
Touches: the folder itself and the lock file, nothing else in it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from .durable import make_folder
from .ports import InUse, Unwritable

LOCK_NAME = "lock"


class DataFolder:
    """Creates the folder if it is missing, readable by its owner only, and holds it until `close`.

    Until `sign`, nothing is written: a folder that is refused stays as it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._signed = False
        self.time_ms = 0
        """The newest time that a server went by on this folder, in ms since 1970; 0: none yet."""
        try:
            make_folder(path)
            was_served = (path / LOCK_NAME).exists()
            self._lock: int | None = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unwritable(f"{path} cannot be used as the data folder: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            self._release()
            raise InUse(f"{path} is in use by {f'process {holder}' if holder else 'another process'}") from error
        except OSError as error:
            self._release()
            raise Unwritable(f"{path} cannot be locked: {error.strerror}") from error
        if was_served:
            self.time_ms = os.fstat(self._lock).st_mtime_ns // 1_000_000
        else:
            self.remember_time(0)

    def sign(self) -> None:
        """Write down which process holds the folder, for the sentence that refuses another one."""
        assert self._lock is not None
        try:
            self._signed = True
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            raise Unwritable(f"{self.path} cannot be written: {error.strerror}") from error
        self.remember_time(self.time_ms)

    def remember_time(self, time_ms: int) -> None:
        """What the next start compares its clock with. Without it, it compares with the log only."""
        self.time_ms = time_ms
        if self._lock is not None:
            with suppress(OSError):
                os.utime(self._lock, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def close(self) -> None:
        """May be called again."""
        if self._lock is not None:
            # The file stays: removing it would let two processes lock two different files.
            if self._signed:
                with suppress(OSError):  # the next holder writes over it
                    os.ftruncate(self._lock, 0)
                self.remember_time(self.time_ms)
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
