"""Checks and copies a whole data folder, whether a server is running on it or not.

A backup is what a power cut would leave: the rows as of one checkpoint, and the log from there on. The segments are
held open before the rows are looked at, so nothing that the rows still need can be trimmed away; newer ones are held
afterwards. Segments are copied newest first, because older ones are complete once a newer one has begun.

Knows:   which files a folder consists of.
Touches: the folder that it writes, under another name until it is whole, verified and durable.
Never:   writes to the folder that it reads, and never over one that is there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from .data_folder import LOCK_NAME, DataFolder
from .durable import make_folder, sync_folder
from .filelog.files import OsFiles
from .filelog.held_files import HeldFiles
from .filelog.segment import SECTOR, name_of, number_of
from .filelog.segment_reader import SegmentReader, read_head
from .folder_check import check_log
from .ports import Damaged, EngineError, InUse, Unwritable
from .sqlite import FILE_NAME
from .sqlite.connect import explain
from .sqlite.database_file import DatabaseFile
from .sqlite.presence_file import PRESENCE_NAME, copy_presence
from .sqlite.snapshot import Snapshot

Progress = Callable[[str, int, int], None]
"""(what is under way, how much of it is done, of how much; 0: unknown)."""

PARTIAL = ".partial"
TRIES = 5
"""A batch that is being written while it is read looks torn, and the one behind it then looks like damage."""


class Checked(NamedTuple):
    served: bool
    """A server was running on it."""
    pointer: int
    last: int
    """The newest offset in the log."""
    pages: int
    rows: int


def check_whole(folder: Path, progress: Progress) -> Checked:
    """Read everything and compare it with its checksums. Raises EngineError; one sentence says what is wrong."""
    with _held(folder) as (served, files, rows):
        total = rows.pages
        rows.check_pages(lambda done: progress("pages", done, total))
        seen = rows.check_rows(lambda done: progress("rows", done, 0))
        last = _check_log(files, rows, served)
        return Checked(served, rows.found.pointer, last, total, seen)


@contextmanager
def reading_at_rest(folder: Path, progress: Progress) -> Generator[Snapshot]:
    """The rows of a folder that nobody serves, and whose log has nothing more. Raises EngineError.

    Everything was compared with its checksums, and no server starts on it meanwhile.
    """
    with _held(folder) as (served, files, rows):
        if served:
            raise InUse(f"a server is running on {folder}: stop it first")
        total = rows.pages
        rows.check_pages(lambda done: progress("checking pages", done, total))
        rows.check_rows(lambda done: progress("checking rows", done, 0))
        if _check_log(files, rows, served) > rows.found.pointer:
            raise EngineError(f"{folder} was not stopped in order: start the server on it once, and stop it")
        yield rows


def back_up(folder: Path, to: Path, progress: Progress) -> Checked:
    """Copy a folder while a server may be running on it. Raises EngineError."""
    with _writing(to) as draft, _held(folder) as (served, files, rows):
        total = rows.pages
        rows.check_pages(lambda done: progress("checking pages", done, total))
        rows.copy_to(str(draft / FILE_NAME), lambda done: progress("copying rows", done, total))
        last = _check_log(files, rows, served)
        numbers = sorted((number for name in files.names() if (number := number_of(name)) is not None), reverse=True)
        for nth, number in enumerate(numbers, 1):
            _copy_segment(files, rows.found.identity, number, OsFiles(draft))
            progress("copying the log", nth, len(numbers))
        _copy_others(folder, draft, served=served)
        copied = _finish(draft, progress)
    return Checked(served, rows.found.pointer, last, total, copied.rows)


def restore(backup: Path, to: Path, progress: Progress) -> Checked:
    """Copy a backup to where a server is to run on it. Raises EngineError."""
    with _writing(to) as draft:
        checked = check_whole(backup, progress)
        if checked.served:
            raise InUse(f"{backup} is served: restore from a backup of it")
        names = sorted(path.name for path in backup.iterdir() if path.name != LOCK_NAME and path.is_file())
        for nth, name in enumerate(names, 1):
            shutil.copyfile(backup / name, draft / name)
            progress("copying", nth, len(names))
        _finish(draft, progress)
    return checked


# --- reading ----------------------------------------------------------------------------------


@contextmanager
def _held(folder: Path) -> Generator[tuple[bool, HeldFiles, Snapshot]]:
    """Is it served, its log, and its rows. Nobody starts a server on it meanwhile if none is running."""
    if not (folder / FILE_NAME).exists():
        raise Unwritable(f"{folder} is not a data folder: it has no {FILE_NAME}")
    database = DatabaseFile(str(folder / FILE_NAME))
    try:
        lock = DataFolder(folder)
    except InUse:
        lock = None
    try:
        with closing(HeldFiles(folder)) as files:
            files.hold()
            with closing(Snapshot(database, os.listdir(folder), served=lock is None)) as rows:
                files.hold()
                yield lock is None, files, rows
    except (apsw.Error, OSError) as error:
        raise explain(error, database.path) from error
    finally:
        if lock:
            lock.close()


def _check_log(files: HeldFiles, rows: Snapshot, served: bool) -> int:
    for _ in range(TRIES - 1 if served else 0):
        try:
            return check_log(files, rows.found.identity, rows.found.pointer)
        except Damaged:
            continue
    return check_log(files, rows.found.identity, rows.found.pointer)


def _copy_segment(files: HeldFiles, identity: bytes, number: int, to: OsFiles) -> None:
    """The header and every whole batch; zeros behind them."""
    file = files.open(name_of(number))
    head = read_head(file, number, identity)
    if head is None:
        return  # the spare, which is just being made
    reader = SegmentReader(file, head)
    with closing(to.create(name_of(number), head.size)) as copy:
        copy.write(0, file.read(0, SECTOR))
        while (batch := reader.next()) is not None:
            copy.write(batch.position, batch.raw)
        copy.sync()


# --- writing ----------------------------------------------------------------------------------


@contextmanager
def _writing(to: Path) -> Generator[Path]:
    """A new folder under another name; it gets its own when everything went well."""
    draft = to.with_name(to.name + PARTIAL)
    if to.exists() and any(to.iterdir() if to.is_dir() else (to,)):
        raise Unwritable(f"{to} is there already; name a folder that does not exist")
    try:
        make_folder(to.parent)
        shutil.rmtree(draft, ignore_errors=True)  # of an attempt that was interrupted
        draft.mkdir(mode=0o700)
    except OSError as error:
        raise Unwritable(f"{draft} cannot be made: {error.strerror}") from error
    try:
        yield draft
        draft.rename(to)
        sync_folder(to.parent)
    except OSError as error:
        raise Unwritable(f"{to} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy_others(folder: Path, draft: Path, *, served: bool) -> None:
    """The secrets of the server, and what it knows of people's presence. Not what is made at each start."""
    if served:
        copy_presence(folder, draft)
    for path in sorted(folder.iterdir()):
        made_again = path.name.startswith(FILE_NAME) or number_of(path.name) is not None or path.name == LOCK_NAME
        is_copied = served and path.name.startswith(PRESENCE_NAME)
        if path.is_file() and not made_again and not is_copied:
            shutil.copyfile(path, draft / path.name)


def _finish(draft: Path, progress: Progress) -> Checked:
    """Make everything durable, readable by its owner only, and read it again."""
    for path in draft.iterdir():
        path.chmod(0o600)
        _sync(path)
    sync_folder(draft)
    try:
        return check_whole(draft, lambda what, done, of: progress(f"verifying {what}", done, of))
    except EngineError as error:
        raise type(error)(f"the copy is not usable: {error}") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
