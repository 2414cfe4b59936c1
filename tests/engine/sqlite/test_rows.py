from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import apsw
import pytest

from nightmail.core.state import encode_row
from nightmail.engine.ports import (
    Checkpoint,
    Damaged,
    EngineError,
    EntryRange,
    Failed,
    Overtaken,
    RowKey,
    TooNew,
    Unwritable,
    saving,
)
from nightmail.engine.sqlite import DEFAULTS, FILE_NAME, SqliteRows, SqliteSettings, connect, schema, statements
from nightmail.engine.sqlite.database_file import DatabaseFile
from nightmail.engine.sqlite.statements import marks
from nightmail.model.rows import Kept, Stream

SHARD = RowKey(Kept.SHARD, 0)
MINUTE_MS = 60_000


def inline(job: Callable[[], None]) -> None:
    job()


def a_store(folder: Path, settings: SqliteSettings = DEFAULTS, entropy: schema.Entropy = bytes) -> SqliteRows:
    return SqliteRows(folder, post=inline, execute=inline, entropy=entropy, settings=settings)


def save(rows: SqliteRows, checkpoint: Checkpoint) -> Overtaken | Failed | None:
    outcomes: list[Overtaken | Failed | None] = []
    rows.save(checkpoint, outcomes.append)
    (outcome,) = outcomes
    return outcome


def shard_row(rows: SqliteRows) -> object:
    answers: list[object] = []
    rows.load([SHARD], answers.append)
    (found,) = answers
    return found


def everything_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


# --- across a restart -------------------------------------------------------------------------


def test_pointer_content_and_identity_survive_a_restart(tmp_path: Path) -> None:
    rows = a_store(tmp_path, entropy=random.Random(7).randbytes)
    identity = rows.identity
    save(rows, Checkpoint(3, 1, rows=[saving(SHARD, 3, b"kept")]))
    rows.close()
    again = a_store(tmp_path, entropy=random.Random(8).randbytes)
    assert (again.pointer, again.identity, shard_row(again)) == (3, identity, [b"kept"])
    assert len(identity) == 8
    again.close()


def test_what_was_confirmed_survives_a_killed_process(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, Checkpoint(3, 1, rows=[saving(SHARD, 3, b"kept")]))
    copy = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, copy)  # the files as a killed process leaves them
    again = a_store(copy)
    assert (again.pointer, shard_row(again)) == (3, [b"kept"])
    again.close()
    rows.close()


def test_a_large_write_ahead_log_is_read_back_after_a_kill(tmp_path: Path) -> None:
    """SQLite's VFS takes no write of 128 KiB or more in one piece."""
    rows = a_store(tmp_path)
    large = bytes(range(256)) * 2_000
    save(rows, Checkpoint(3, 1, rows=[saving(SHARD, 3, large)]))
    copy = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, copy)
    assert (copy / f"{FILE_NAME}-wal").stat().st_size > 128 * 1024
    again = a_store(copy)
    assert (again.pointer, shard_row(again)) == (3, [large])
    again.close()
    rows.close()


# --- nothing is left behind -------------------------------------------------------------------


def test_a_cleared_entry_is_in_no_file_after_the_interval(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    secret = b"ciphertext of a message"
    save(rows, Checkpoint(1, 0, entries=[(4, 1, secret * 9), (4, 2, secret * 400)], rows=[saving(SHARD, 1, secret)]))
    assert any(secret in data for data in everything_in(tmp_path).values())
    save(rows, Checkpoint(2, 1, cleared=[(4, 1)], dropped=[(4, 2)], rows=[saving(SHARD, 2, None)]))
    save(rows, Checkpoint(3, 10 * MINUTE_MS))
    assert [name for name, data in everything_in(tmp_path).items() if secret in data] == []
    rows.close()


def test_forgetting_cleans_the_files_of_a_server_at_rest(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    secret = b"ciphertext of a message"
    save(rows, Checkpoint(1, 0, entries=[(4, 1, secret * 9)]))
    save(rows, Checkpoint(2, 1, cleared=[(4, 1)]))
    rows.forget(0)
    assert [name for name, data in everything_in(tmp_path).items() if secret in data] == []
    rows.close()


def test_no_copy_stays_where_pages_were_rebuilt(tmp_path: Path) -> None:
    """SQLite's secure_delete alone leaves about one deleted entry in a thousand readable."""
    rows, chance = a_store(tmp_path), random.Random(0)
    heads, live, made = [0] * 400, dict[tuple[int, int], bytes](), 0
    for upto in range(1, 61):
        entries: list[tuple[int, int, bytes]] = []
        for _ in range(100):
            queue, made = chance.randrange(400), made + 1
            heads[queue] += 1
            live[queue, heads[queue]] = mark = b"<<%08d>>" % made
            entries.append((queue, heads[queue], mark * chance.choice([1, 16, 50, 50, 166, 750])))
        cleared = {queue: chance.randrange(heads[queue] + 1) for queue in chance.sample(range(400), 60)}
        live = {(queue, seq): mark for (queue, seq), mark in live.items() if seq > cleared.get(queue, 0)}
        save(rows, Checkpoint(upto, upto * MINUTE_MS, entries=entries, cleared=list(cleared.items())))
    for _ in range(14):
        rows.forget(0)
    left = set(re.findall(rb"<<\d{8}>>", b"".join(everything_in(tmp_path).values())))
    assert left == set(live.values())
    rows.close()
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    assert db.execute("PRAGMA integrity_check").get == "ok"
    db.close()


def test_the_write_ahead_log_is_bounded(tmp_path: Path) -> None:
    rows = a_store(tmp_path, SqliteSettings(wal_pages=20))
    sizes: list[int] = []
    for upto in range(1, 30):
        save(rows, Checkpoint(upto, 0, entries=[(upto, 1, bytes(20_000))]))
        sizes.append((tmp_path / (FILE_NAME + "-wal")).stat().st_size)
    assert max(sizes) < 40 * 4_096
    assert sizes[-1] == max(sizes)  # it begins anew in the space it has
    rows.close()


# --- the delivery log -------------------------------------------------------------------------


def a_block(upto: int, pieces: int = 20, size: int = 10_000) -> Checkpoint:
    return Checkpoint(upto, upto, notes=[bytes([nth]) * size for nth in range(pieces)], noted=(7,))


def wal_bytes(folder: Path) -> int:
    return (folder / (FILE_NAME + "-wal")).stat().st_size


def test_the_loop_and_whoever_reads_the_delivery_log_never_wait_for_each_other(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, a_block(1))
    told: list[bytes] = []
    with rows._reading:  # pyright: ignore[reportPrivateUsage]
        asking = Thread(target=lambda: told.extend(rows.recall((7,), 0)), daemon=True)
        asking.start()
        asking.join(10)
        assert told == a_block(1).notes
    answers: list[object] = []
    with rows._recalling:  # pyright: ignore[reportPrivateUsage]
        loop = Thread(target=lambda: answers.append(shard_row(rows)), daemon=True)
        loop.start()
        loop.join(10)
        assert answers == [[None]]
    rows.close()


def test_whoever_reads_the_delivery_log_holds_nothing_between_two_pieces(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, a_block(1))
    asking = rows.recall((7,), 0)
    first = next(asking)
    save(rows, a_block(2))
    rows.forget(0)
    assert wal_bytes(tmp_path) == 0
    assert [first, *asking] == [*a_block(1).notes, *a_block(2).notes]
    asking = rows.recall((7,), 0)
    next(asking)
    rows.close()
    with pytest.raises(EngineError, match="is closed"):
        next(asking)


def test_a_block_of_an_older_schema_is_recalled_and_forgotten(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    schema.migrate(db, bytes, schema.STEPS[:4])
    db.execute("INSERT INTO note VALUES (3, 3, ?, ?)", (marks((7,)), b"old" * 10_000))
    db.execute("UPDATE meta SET value = 3 WHERE key = 'pointer'")
    db.close()
    rows = a_store(tmp_path)
    save(rows, a_block(4, 2))
    assert list(rows.recall((7,), 0)) == [b"old" * 10_000, *a_block(4, 2).notes]
    rows.forget(4)
    assert list(rows.recall((7,), 0)) == a_block(4, 2).notes
    rows.close()


def test_a_database_without_forwards_gets_room_for_them_and_keeps_what_it_has(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    schema.migrate(db, bytes, schema.STEPS[:5])
    db.execute("INSERT INTO entry VALUES (3, 1, ?)", (b"one",))
    db.execute("UPDATE meta SET value = 3 WHERE key = 'pointer'")
    db.close()
    rows = a_store(tmp_path)
    found: list[object] = []
    rows.load_forwards(1, 0, 9, 9, found.append)
    save(rows, Checkpoint(4, 1, forwards=[(1, 7, b"seven")]))
    rows.load_forwards(1, 0, 9, 9, found.append)
    rows.load([EntryRange(3, 0, 9)], found.append)
    assert (rows.pointer, found) == (4, [[], [(7, b"seven")], [[(1, b"one")]]])
    rows.close()


def test_a_dropped_forward_is_in_no_file_after_the_interval(tmp_path: Path) -> None:
    rows = a_store(tmp_path, SqliteSettings(wal_truncate_ms=5))
    save(rows, Checkpoint(1, 1, forwards=[(1, 1, b"a secret forward" * 20)]))
    rows.drop_forwards(1, 1, lambda _: None)
    save(rows, Checkpoint(2, 10))
    save(rows, Checkpoint(3, 20))
    assert not any(b"a secret forward" in file.read_bytes() for file in tmp_path.iterdir())
    rows.close()


def test_the_delivery_log_is_dropped_little_by_little_in_the_space_of_a_few_pieces(tmp_path: Path) -> None:
    jobs: list[Callable[[], None]] = []
    settings = SqliteSettings(wal_pages=50, forget_bytes=50_000)
    rows = SqliteRows(tmp_path, post=inline, execute=jobs.append, entropy=bytes, settings=settings)

    def work() -> None:
        while jobs:
            jobs.pop(0)()

    for upto in range(1, 11):
        rows.save(a_block(upto), lambda _: None)
        work()
    rows.forget(0)
    work()
    rows.forget(10)
    sizes: list[int] = []
    while len(jobs) == 1:
        jobs.pop()()
        sizes.append(wal_bytes(tmp_path))
        assert not sizes or sizes[-1] < 110 * 4_096
    assert len(sizes) >= 9 * 200_000 // 50_000
    assert list(rows.recall((7,), 0)) == a_block(10).notes
    rows.close()
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    assert db.execute("SELECT count(*), min(upto) FROM piece").fetchall() == [(19, 10)]
    db.close()


def test_a_save_that_waits_for_its_turn_keeps_nobody_waiting(tmp_path: Path) -> None:
    jobs: list[Callable[[], None]] = []
    rows = SqliteRows(tmp_path, post=inline, execute=jobs.append, entropy=bytes)
    outcomes: list[object] = []
    rows.save(a_block(1), outcomes.append)
    jobs.pop()()
    rows.forget(0)
    rows.save(a_block(2), outcomes.append)
    forgetting, saving_it = jobs
    forgetting()
    assert wal_bytes(tmp_path) == 0
    saving_it()
    assert outcomes == [None, None]
    rows.close()


# --- when it does not work --------------------------------------------------------------------


def test_a_full_disk_fails_the_save_whole_and_a_repeat_succeeds(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, Checkpoint(1, 0, rows=[saving(SHARD, 1, b"old")]))
    big = Checkpoint(2, 0, rows=[saving(SHARD, 2, b"new")], entries=[(n, 1, bytes(3_000)) for n in range(300)])
    _limit_pages(rows, 20)
    outcome = save(rows, big)
    assert isinstance(outcome, Failed)
    assert "no space is left" in outcome.why
    assert (rows.pointer, shard_row(rows)) == (1, [b"old"])
    _limit_pages(rows, 1_000_000)
    assert save(rows, big) is None
    assert (rows.pointer, shard_row(rows)) == (2, [b"new"])
    rows.close()


def _limit_pages(rows: SqliteRows, pages: int) -> None:
    assert rows._writer  # pyright: ignore[reportPrivateUsage]
    rows._writer.execute(f"PRAGMA max_page_count = {pages}").fetchall()  # pyright: ignore[reportPrivateUsage]


def test_a_lost_connection_is_opened_again_by_the_next_save(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, Checkpoint(1, 0, rows=[saving(SHARD, 1, b"old")]))
    assert rows._writer  # pyright: ignore[reportPrivateUsage]
    rows._writer.close()  # pyright: ignore[reportPrivateUsage]
    assert save(rows, Checkpoint(2, 0, rows=[saving(SHARD, 2, b"new")])) is None
    assert (rows.pointer, shard_row(rows)) == (2, [b"new"])
    rows.close()


def test_without_memory_there_is_nothing_to_ask_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(_: RowKey) -> tuple[str, tuple[int, ...]]:
        raise apsw.NoMemError("out of memory")

    rows = a_store(tmp_path)
    monkeypatch.setattr(statements, "read_row", too_much)
    with pytest.raises(MemoryError):
        shard_row(rows)
    rows.close()


def test_after_closing_nothing_works_and_nothing_raises(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    rows.close()
    rows.close()
    rows.forget(1)
    assert isinstance(save(rows, Checkpoint(1, 0)), Failed)
    assert isinstance(shard_row(rows), Failed)


# --- what cannot be opened --------------------------------------------------------------------


def test_rubbish_is_damaged_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 1_000)
    before = everything_in(tmp_path)
    with pytest.raises(Damaged, match="is not a database"):
        a_store(tmp_path)
    assert everything_in(tmp_path) == before


def test_a_database_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = everything_in(tmp_path)
    with pytest.raises(Damaged, match="not one of Nightmail's"):
        a_store(tmp_path)
    assert everything_in(tmp_path) == before


def test_a_newer_schema_is_too_new_and_stays_as_it_was(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = everything_in(tmp_path)
    with pytest.raises(TooNew, match="has schema 99; this version of Nightmail knows schemas up to 7"):
        a_store(tmp_path)
    assert {name: data for name, data in everything_in(tmp_path).items() if data} == before


def test_a_page_that_was_overwritten_is_damaged(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with (tmp_path / FILE_NAME).open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 9 * 4_096)
    with pytest.raises(Damaged, match="is damaged"):
        a_store(tmp_path)


def test_a_folder_that_is_not_there_is_unwritable(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="cannot be opened for writing"):
        a_store(tmp_path / "nowhere")


def test_a_pragma_that_did_not_take_is_noticed(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "x"))
    with pytest.raises(EngineError, match="answers synchronous = 2, but 3 is needed"):
        connect._set(db, DatabaseFile("x"), "synchronous", "FULL", 3)  # pyright: ignore[reportPrivateUsage]
    db.close()


# --- migrations -------------------------------------------------------------------------------


def test_missing_steps_run_once_and_all_or_nothing(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    present = len(schema.STEPS)
    more = (*schema.STEPS, "CREATE TABLE another (x)", "CREATE TABLE third (x); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(apsw.SQLError):
        schema.migrate(db, bytes, more)
    assert schema.number(db, "user_version") == present
    schema.migrate(db, bytes, more[:-1])
    schema.migrate(db, bytes, more[:-1])
    assert schema.number(db, "user_version") == present + 1
    assert schema.read_identity(db) == bytes(8)
    db.close()


def test_rows_of_the_first_schema_are_found_in_their_new_tables(tmp_path: Path) -> None:
    keys = [RowKey(kind, a, b) for kind in Kept for a in (0, 1, (1 << 61) - 1) for b in (0, 7)]
    # A later step looks into streams: they must be some, with answers in a map instead of a piece of bytes.
    values = [encode_row(Stream(key.a)) if key.kind is Kept.STREAM else b"%d-%d-%d" % key for key in keys]
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    schema.migrate(db, bytes, schema.STEPS[:1])
    db.executemany(
        "INSERT INTO row VALUES (?, ?, ?, 1, ?)",
        [(*key, value.replace(b"\xc4\x00", b"\x80")) for key, value in zip(keys, values, strict=True)],
    )
    db.close()
    rows = a_store(tmp_path)
    answers: list[object] = []
    rows.load(keys, answers.append)
    save(rows, Checkpoint(1, 0, rows=[saving(key, 1, None) for key in keys]))
    rows.load(keys, answers.append)
    assert answers == [values, [None] * len(keys)]
    rows.close()


# --- small parts ------------------------------------------------------------------------------


def test_every_statement_goes_by_a_key(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    many = (statements.DROP_NUMBERED, statements.READ_NUMBERED)
    texts = {name: text for name, text in vars(statements).items() if isinstance(text, str) and "{}" not in text}
    texts |= {f"{kind.name}: {text[:6]}": text for one in many for kind, text in one.items()}
    for name, text in texts.items():
        if re.match(r"\s*(SELECT|DELETE)", text):
            binding = apsw.carray((b" ",)) if "carray" in text else 1
            plan = db.execute(f"EXPLAIN QUERY PLAN {text}", (binding,) * text.count("?")).fetchall()
            scans = [line[3] for line in plan if str(line[3]).startswith("SCAN") and "carray" not in str(line[3])]
            assert scans == [], name
    db.close()


def test_marks_are_two_bytes_per_device_sorted_and_without_order(tmp_path: Path) -> None:
    devices = [3, 5, 7, 5]
    assert marks(devices) == marks(reversed(devices))
    assert len(marks(devices)) == 6
    assert marks([5]) in (marks(devices)[i : i + 2] for i in (0, 2, 4))


def test_an_empty_range_of_a_large_queue_is_empty(tmp_path: Path) -> None:
    rows = a_store(tmp_path)
    save(rows, Checkpoint(1, 0, entries=[(8, seq, b"x") for seq in range(1, 2_001)]))
    answers: list[object] = []
    rows.load([EntryRange(8, 2_001, 9_000), EntryRange(8, 3, 2)], answers.append)
    assert answers == [[[], []]]
    rows.close()
