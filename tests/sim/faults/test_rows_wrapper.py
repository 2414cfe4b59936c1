"""A wrapper that changes nothing is like the rows behind it."""

from __future__ import annotations

from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Overtaken, RowKey, Rows, saving
from nightmail.model.rows import Kept
from sim.faults.rows_wrapper import RowsWrapper

KEY = RowKey(Kept.ACCOUNT, 7)
CHECKPOINT = Checkpoint(
    5, 1_000, rows=[saving(KEY, 5, b"row")], notes=(b"note",), noted=(7,), forwards=[(2, 1, b"told")]
)


def test_every_call_reaches_the_rows_behind_it_and_its_answer_comes_back() -> None:
    behind = MemoryRows()
    rows: Rows = RowsWrapper(behind)
    saved: list[Overtaken | Failed | None] = []
    found: list[Found | Overtaken | Failed] = []
    rows.save(CHECKPOINT, saved.append)
    rows.load([KEY], found.append)
    assert (saved, found, rows.pointer, behind.pointer) == ([None], [[b"row"]], 5, 5)
    assert list(rows.recall((7,), 0)) == [b"note"]
    read: list[object] = []
    rows.load_forwards(2, 0, 9, 9, read.append)
    rows.drop_forwards(2, 1, read.append)
    assert (read, behind.forwards) == ([[(1, b"told")], None], {})
    rows.forget(2_000)
    assert (list(rows.recall((7,), 0)), behind.notes) == ([], {})


def test_closing_closes_the_rows_behind_it() -> None:
    closed: list[bool] = []

    class Closing(MemoryRows):
        def close(self) -> None:
            closed.append(True)

    RowsWrapper(Closing()).close()
    assert closed == [True]
