"""Every row, entry and block of the delivery log is compared with its checksum when it is read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from nightmail.engine.ports import Checkpoint, Damaged, Failed, Found, Overtaken, saving
from nightmail.engine.sqlite import SqliteRows, schema
from nightmail.engine.sqlite.row_sums import add_sums
from nightmail.model.rows import EntryRange, Kept, Need, RowKey
from tests.embedded import inline
from tests.engine.sqlite.editing import edit

KEYS = [
    RowKey(Kept.SHARD, 0, 0), RowKey(Kept.ACCOUNT, 7, 0), RowKey(Kept.STREAM, 7, 9), RowKey(Kept.MAILBOX, 8, 0),
    RowKey(Kept.CHANGES, 8, 0), RowKey(Kept.DUE, 5, 2), RowKey(Kept.KEYS, 8, 0),
]  # fmt: skip
NEEDS: list[Need] = [*KEYS, EntryRange(3, 1, 9)]
CHECKPOINT = Checkpoint(
    5, 50, [saving(key, 4, f"value of {key}".encode()) for key in KEYS], [(3, 1, b"one"), (3, 2, b"two")],
    notes=[b"first lines", b"second lines"], noted=[7],
)  # fmt: skip
FOUND = [*(f"value of {key}".encode() for key in KEYS), [(1, b"one"), (2, b"two")]]
TABLES = {
    "row": ("value", ("kind", "a", "b", "version")),
    "account": ("value", ("a", "version")),
    "mailbox": ("value", ("a", "version")),
    "changes": ("value", ("a", "version")),
    "keys": ("value", ("a", "version")),
    "stream": ("value", ("a", "b", "version")),
    "entry": ("body", ("queue", "seq")),
    "note": ("lines", ("at", "devices")),
    "piece": ("lines", ("nth",)),
}


def a_store(folder: Path) -> SqliteRows:
    return SqliteRows(folder, post=inline, execute=inline, entropy=bytes)


def load(rows: SqliteRows, needs: list[Need]) -> Found | Overtaken | Failed:
    answers: list[Found | Overtaken | Failed] = []
    rows.load(needs, answers.append)
    (answer,) = answers
    return answer


def everything(folder: Path) -> tuple[Found | Overtaken | Failed, list[bytes]]:
    rows = a_store(folder)
    try:
        return load(rows, NEEDS), list(rows.recall((7,), 0))
    finally:
        rows.close()


def saved(folder: Path) -> None:
    rows = a_store(folder)
    rows.save(CHECKPOINT, lambda outcome: None)
    rows.close()
    assert everything(folder) == (FOUND, [b"first lines", b"second lines"])


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
    assert everything(tmp_path) == (FOUND, [b"first lines", b"second lines"])


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
        ("INSERT INTO account SELECT * FROM mailbox", "DELETE FROM account WHERE a = 8"),
    ):
        edit(tmp_path, bad)
        rows = a_store(tmp_path)
        with pytest.raises(Damaged):
            load(rows, [RowKey(Kept.ACCOUNT, 8, 0), EntryRange(3, 3, 3)])
        rows.close()
        edit(tmp_path, good)
    assert everything(tmp_path) == (FOUND, [b"first lines", b"second lines"])


def test_a_pointer_that_was_changed_is_noticed_at_the_start(tmp_path: Path) -> None:
    saved(tmp_path)
    edit(tmp_path, "UPDATE meta SET value = 4 WHERE key = 'pointer'")
    with pytest.raises(Damaged, match="says that it holds checkpoint 4, but that is not what was written"):
        a_store(tmp_path)


def test_a_database_without_checksums_gets_them_and_loses_nothing(tmp_path: Path) -> None:
    saved(tmp_path)
    trim = {table: column for table, (column, _) in TABLES.items()}
    for table, column in trim.items():
        edit(tmp_path, f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) - 4)")
    edit(tmp_path, "DELETE FROM meta WHERE key = 'sum'")
    edit(tmp_path, f"PRAGMA user_version = {schema.STEPS.index(add_sums)}")
    for suffix in ("-sums0", "-sums1"):
        (tmp_path / f"rows.db{suffix}").unlink()
    assert everything(tmp_path) == (FOUND, [b"first lines", b"second lines"])
    assert everything(tmp_path) == (FOUND, [b"first lines", b"second lines"])
