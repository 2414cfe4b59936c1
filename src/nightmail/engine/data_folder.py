"""The data folder, held by one process at a time.

Knows:   the lock file; the kernel releases the lock when the process ends, however it ends.
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
        try:
            make_folder(path)
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

    def sign(self) -> None:
        """Write down which process holds the folder, for the sentence that refuses another one."""
        assert self._lock is not None
        try:
            self._signed = True
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            raise Unwritable(f"{self.path} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """May be called again."""
        if self._lock is not None:
            # The file stays: removing it would let two processes lock two different files.
            if self._signed:
                with suppress(OSError):  # the next holder writes over it
                    os.ftruncate(self._lock, 0)
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
