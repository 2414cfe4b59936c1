"""The witness of `make kills`: does a WAL end in the middle of a transaction?"""

from __future__ import annotations

from pathlib import Path

import apsw

from sim.runs.kills import FRAME_HEADER, WAL_HEADER, ends_inside


def wal_of(folder: Path) -> bytes:
    db = apsw.Connection(str(folder / "rows.db"))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE t (x)")
    with db:
        db.executemany("INSERT INTO t VALUES (zeroblob(3000))", [()] * 20)
    data = (folder / "rows.db-wal").read_bytes()
    db.close()
    return data


def test_a_whole_transaction_is_not_taken_for_half_a_one(tmp_path: Path) -> None:
    wal = tmp_path / "wal"
    data = wal_of(tmp_path)
    wal.write_bytes(data)
    assert not ends_inside(wal)
    assert not ends_inside(tmp_path / "nowhere")


def test_a_transaction_that_lacks_its_last_page_is_half_a_one(tmp_path: Path) -> None:
    wal = tmp_path / "wal"
    data = wal_of(tmp_path)
    frame = FRAME_HEADER + int.from_bytes(data[8:12])
    for missing in (1, frame // 2, frame, 2 * frame):
        wal.write_bytes(data[: len(data) - missing])
        assert ends_inside(wal), missing
    wal.write_bytes(data[:WAL_HEADER])
    assert not ends_inside(wal)
