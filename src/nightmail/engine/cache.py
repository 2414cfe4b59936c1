"""Which rows and entries stay in memory. No record depends on it: the fold asks for the rows it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nightmail.core.state import ShardState, Table
from nightmail.model.rows import queue_id


def shrink(state: ShardState, rows_max: int) -> None:
    """Drop the rows that have not changed for longest, until at most `rows_max` are left.

    A changed row is not saved yet and stays. A row that is saved moves to the back of its table
    (`freshen`), so the front holds the rows that changed longest ago.
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


def forget_keys(state: ShardState) -> None:
    """Drop all keys that are saved: a conversation needs them once, when it begins, and they are large.

    So no more of them are in memory than start the next checkpoint (`checkpoint_rows` / `KEYS_WEIGHT`,
    111 rows or 20 MB), and few after it.
    """
    rows, changed = state.keys.rows, state.keys.changed
    for device in [device for device in rows if device not in changed]:
        del rows[device]


def freshen(state: ShardState) -> None:
    """Move every changed row to the back of its table."""
    for table in state.tables():
        for key in table.changed:
            table.rows[key] = table.rows.pop(key)


def forget_entries(state: ShardState, saved: Iterable[tuple[int, int]]) -> None:
    """Drop entries that the store holds, too: they were saved to it or read from it.

    An entry that is needed again is read again.
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
