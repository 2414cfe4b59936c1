"""Changing a stored row behind the server's back, under page checksums that are right: a mistake above the disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from nightmail.engine.sqlite import FILE_NAME
from nightmail.engine.sqlite.database_file import DatabaseFile
from nightmail.engine.sqlite.page_sums import read_sums, sums_of_file, write_sums


def edit(folder: Path, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    with closing(apsw.Connection(str(folder / FILE_NAME))) as db:
        found = db.execute(statement, values).fetchall()
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    sum_again(folder)
    return found


def sum_again(folder: Path) -> None:
    """Have the checksums of its pages agree with the database file as it is."""
    database = DatabaseFile(str(folder / FILE_NAME))
    before = read_sums(database)
    assert before is not None
    write_sums(database, before._replace(generation=before.generation + 1, pages=sums_of_file(database).pages))
