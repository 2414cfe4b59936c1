"""Looks at a whole data folder before anything in it is opened for writing.

Knows:   which files belong together, and what each must say about the others.
Touches: nothing; it only reads.
Never:   changes a name, a byte or a time in the folder: what is refused can be put right and started again.
"""

from __future__ import annotations

from pathlib import Path

from .filelog.files import Files
from .filelog.recovery import judge
from .filelog.replay import replay
from .filelog.segment import number_of
from .ports import Damaged, Unwritable
from .sqlite import FILE_NAME
from .sqlite.database_file import DatabaseFile
from .sqlite.inspection import inspect


def check_folder(folder: Path, files: Files, vfs: str = "") -> None:
    """Raises Damaged, TooNew, Unwritable or EngineError if this folder cannot be served."""
    database = DatabaseFile(str(folder / FILE_NAME), vfs)
    try:
        names = files.names()
    except OSError as error:
        raise Unwritable(f"{folder} cannot be read: {error.strerror}") from error
    segments = [name for name in names if number_of(name) is not None]
    found = inspect(database, names, has_log=bool(segments))
    if found is None:
        if segments:
            # The database is durable before the first segment is made.
            raise Damaged(f"{database.path} is missing, but its log is there ({segments[-1]}): put the file back")
        return
    check_log(files, found.identity, found.pointer)


def check_log(files: Files, identity: bytes, after: int) -> int:
    """Read every batch above the checkpoint `after`; returns the newest offset. Raises like `check_folder`."""
    found = judge(files, identity, after).found
    if found.last > after:
        for _ in replay(files, identity, found.used, after, found.last):
            pass
    return found.last
