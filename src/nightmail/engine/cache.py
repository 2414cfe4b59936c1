"""Which rows and entries stay in memory. Never decides anything: the fold asks for what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nightmail.core.state import State, Table
from nightmail.model.rows import queue_id


def shrink(state: State, rows_max: int) -> None:
    """Let go of the rows that have not changed for longest, until at most `rows_max` are left.

    A changed row is not saved yet and stays. Rows that did change are moved to the back of their
    table when they are saved (`freshen`), so the front holds what nobody has touched for long.
    """
    tables = state.tables()
    total = sum(map(len, tables))
    if total <= rows_max:
        return
    for table in tables:
        excess = (total - rows_max) * len(table) // total + 1
        idle = _oldest_unchanged(table, excess)
        for key in idle:
            del table[key]
        if table is state.mailboxes:
            for device in idle:
                for lane in (0, 1):
                    queue = queue_id(device, lane)
                    state.entries.pop(queue, None)
                    state.stored.pop(queue, None)


def forget_keys(state: State) -> None:
    """Let go of all keys that are saved: a talk needs them once, at its beginning, and they are heavy.

    So between two checkpoints no more of them come together than start the next one
    (`checkpoint_rows` / `KEYS_WEIGHT`, 111 rows or 20 MB), and after it few are left.
    """
    rows, changed = state.keys.rows, state.keys.changed
    for device in [device for device in rows if device not in changed]:
        del rows[device]


def freshen(state: State) -> None:
    """Move every changed row to the back of its table."""
    for table in state.tables():
        for key in table.changed:
            table.rows[key] = table.rows.pop(key)


def forget_entries(state: State, saved: Iterable[tuple[int, int]]) -> None:
    """Drop entries that the store holds as well, because it was given them or they were read from it.

    One that is wanted again is read again.
    """
    for queue, seq in saved:
        entries = state.entries.get(queue)
        if entries is not None:
            entries.pop(seq, None)
            if not entries:
                del state.entries[queue]


def _oldest_unchanged(table: Table[Any, Any], wanted: int) -> list[Any]:
    idle: list[Any] = []
    for key in table.rows:
        if len(idle) >= wanted:
            break
        if key not in table.changed:
            idle.append(key)
    return idle
