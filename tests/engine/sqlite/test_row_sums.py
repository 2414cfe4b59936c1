"""Every row, entry, forward and block of the delivery log is compared with its checksum when it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import apsw
import pytest

from nightmail.engine.ports import Checkpoint, Damaged, EngineError, Failed, Found, Overtaken, saving
from nightmail.engine.sqlite import FILE_NAME, SqliteRows, schema
from nightmail.engine.sqlite.database_file import DatabaseFile
from nightmail.engine.sqlite.inspection import inspect
from nightmail.engine.sqlite.page_sums import SUFFIXES
from nightmail.model.rows import EntryRange, Kept, Need, RowKey
from sim.faults.disk import Disk, Killed, PowerCut
from sim.faults.disk_vfs import DiskVfs
from tests.embedded import inline
from tests.engine.sqlite.editing import edit

KEYS = [
    RowKey(Kept.SHARD, 0, 0), RowKey(Kept.ACCOUNT, 7, 0), RowKey(Kept.STREAM, 7, 9), RowKey(Kept.MAILBOX, 8, 0),
    RowKey(Kept.RECEIPTS, 8, 0), RowKey(Kept.DUE, 5, 2), RowKey(Kept.KEYS, 8, 0),
]  # fmt: skip
NEEDS: list[Need] = [*KEYS, EntryRange(3, 1, 9)]
CHECKPOINT = Checkpoint(
    5, 50, [saving(key, 4, f"value of {key}".encode()) for key in KEYS], [(3, 1, b"one"), (3, 2, b"two")],
    notes=[b"first lines", b"second lines"], noted=[7], forwards=[(1, 8, b"eight"), (1, 9, b"nine")],
)  # fmt: skip
FOUND = [*(f"value of {key}".encode() for key in KEYS), [(1, b"one"), (2, b"two")]]
FORWARDS = [(8, b"eight"), (9, b"nine")]
WHOLE = FOUND, [b"first lines", b"second lines"], FORWARDS
TABLES = {
    "row": ("value", ("kind", "a", "b", "version")),
    "account": ("value", ("a", "version")),
    "mailbox": ("value", ("a", "version")),
    "changes": ("value", ("a", "version")),
    "keys": ("value", ("a", "version")),
    "stream": ("value", ("a", "b", "version")),
    "entry": ("body", ("queue", "seq")),
    "forward": ("record", ("shard", "k")),
    "note": ("lines", ("at", "devices")),
    "piece": ("lines", ("nth",)),
}


WITH_FORWARDS = schema.SUMMED - 1
OLDER = [WITH_FORWARDS - 1, WITH_FORWARDS]
"""Schemas without checksums: without forwards, and with them."""

Everything = tuple[object, list[bytes], object]


def a_store(folder: Path, vfs: str = "") -> SqliteRows:
    return SqliteRows(folder, post=inline, execute=inline, entropy=bytes, vfs=vfs, alone=bool(vfs))


def load(rows: SqliteRows, needs: list[Need]) -> Found | Overtaken | Failed:
    answers: list[Found | Overtaken | Failed] = []
    rows.load(needs, answers.append)
    (answer,) = answers
    return answer


def load_forwards(rows: SqliteRows) -> Sequence[tuple[int, bytes]] | Failed:
    answers: list[Sequence[tuple[int, bytes]] | Failed] = []
    rows.load_forwards(1, 0, 9, 9, answers.append)
    (answer,) = answers
    return answer


def everything(folder: Path, vfs: str = "") -> Everything:
    rows = a_store(folder, vfs)
    try:
        return load(rows, NEEDS), list(rows.recall((7,), 0)), load_forwards(rows)
    finally:
        rows.close()


def saved(folder: Path) -> None:
    rows = a_store(folder)
    rows.save(CHECKPOINT, lambda outcome: None)
    rows.close()
    assert everything(folder) == WHOLE


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_bit_in_a_stored_value_is_noticed_when_it_is_read(tmp_path: Path, table: str) -> None:
    saved(tmp_path)
    column, _ = TABLES[table]
    ((good,),) = edit(tmp_path, f"SELECT {column} FROM {table} LIMIT 1")
    chance = Random(table)
    for _ in range(8):
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        edit(tmp_path, f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (bytes(bad), good))
        with pytest.raises(Damaged, match="is stored, but is not what was written"):
            everything(tmp_path)
        edit(tmp_path, f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (good, bytes(bad)))
    assert everything(tmp_path) == WHOLE


@pytest.mark.parametrize("table", ["account", "mailbox", "changes", "keys", "stream", "row"])
def test_a_value_under_another_version_is_noticed(tmp_path: Path, table: str) -> None:
    saved(tmp_path)
    edit(tmp_path, f"UPDATE {table} SET version = version + 1")
    with pytest.raises(Damaged, match=r"^the row .* is stored, but is not what was written$"):
        everything(tmp_path)


def test_a_value_under_another_key_or_in_another_table_is_noticed(tmp_path: Path) -> None:
    saved(tmp_path)
    for bad, good in (
        ("UPDATE account SET a = 8", "UPDATE account SET a = 7"),
        ("UPDATE entry SET seq = 3 WHERE seq = 2", "UPDATE entry SET seq = 2 WHERE seq = 3"),
        ("UPDATE forward SET k = 7 WHERE k = 8", "UPDATE forward SET k = 8 WHERE k = 7"),
        ("INSERT INTO account SELECT * FROM mailbox", "DELETE FROM account WHERE a = 8"),
    ):
        edit(tmp_path, bad)
        rows = a_store(tmp_path)
        with pytest.raises(Damaged):
            _ = load(rows, [RowKey(Kept.ACCOUNT, 8, 0), EntryRange(3, 3, 3)]), load_forwards(rows)
        rows.close()
        edit(tmp_path, good)
    assert everything(tmp_path) == WHOLE


def test_a_pointer_that_was_changed_is_noticed_at_the_start(tmp_path: Path) -> None:
    saved(tmp_path)
    edit(tmp_path, "UPDATE meta SET value = 4 WHERE key = 'pointer'")
    with pytest.raises(Damaged, match="says that it holds checkpoint 4, but that is not what was written"):
        a_store(tmp_path)


def of_an_older_schema(folder: Path, version: int) -> Everything:
    """Take back what the newer steps did; returns what is then stored."""
    saved(folder)
    for table, (column, _) in TABLES.items():
        edit(folder, f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) - 4)")
    edit(folder, "DELETE FROM meta WHERE key = 'sum'")
    if version < WITH_FORWARDS:
        edit(folder, "DROP TABLE forward")
    edit(folder, f"PRAGMA user_version = {version}")
    for suffix in SUFFIXES:
        (folder / f"{FILE_NAME}{suffix}").unlink()
    return WHOLE if version >= WITH_FORWARDS else (*WHOLE[:2], [])


@pytest.mark.parametrize("version", OLDER)
def test_a_database_without_checksums_gets_them_and_loses_nothing(tmp_path: Path, version: int) -> None:
    stored = of_an_older_schema(tmp_path, version)
    assert everything(tmp_path) == stored
    assert edit(tmp_path, "PRAGMA user_version") == [(len(schema.STEPS),)]
    assert everything(tmp_path) == stored


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("ends", [PowerCut, Killed])
def test_a_migration_that_is_cut_off_anywhere_is_done_by_the_next_start(
    tmp_path: Path, version: int, ends: type[PowerCut]
) -> None:
    stored = of_an_older_schema(tmp_path, version)
    database, folder, nth = (tmp_path / FILE_NAME).read_bytes(), Path("data"), 0
    vfs = DiskVfs("migrating", Disk(Random(0)), Random(0))
    try:
        while True:
            nth += 1
            disk = vfs.disk = a_disk(nth, folder, database)
            disk.before = at_operation(disk.operations + nth, disk, ends)
            try:
                start(disk, folder, vfs)
            except (PowerCut, apsw.Error, EngineError):
                assert not disk.is_on
            else:
                break
            disk.before = calm
            disk.power_on()
            assert start(disk, folder, vfs) == stored, nth
            assert start(disk, folder, vfs) == stored, nth
        assert nth > 100
    finally:
        vfs.unregister()


def a_disk(seed: int, folder: Path, database: bytes) -> Disk:
    """A disk that holds a stopped server's database, durable."""
    disk = Disk(Random(seed))
    file = disk.create(str(folder / FILE_NAME))
    file.write(0, database)
    file.sync()
    file.close()
    disk.sync_folder(str(folder))
    return disk


def at_operation(nth: int, disk: Disk, ends: type[PowerCut]) -> Callable[[str, str], None]:
    def before(operation: str, path: str) -> None:
        if disk.operations == nth:
            raise ends

    return before


def calm(operation: str, path: str) -> None:
    pass


def start(disk: Disk, folder: Path, vfs: DiskVfs) -> Everything:
    assert inspect(DatabaseFile(str(folder / FILE_NAME), vfs.name), disk.names(str(folder)), has_log=True)
    return everything(folder, vfs.name)
