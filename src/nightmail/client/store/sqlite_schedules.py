"""What the SQLite store keeps of messages for later. A part of `sqlite.py`, whose database it shares.

Knows:   the table of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from nightmail.model.forms import NUMBER_MAX

from .schedule_rows import ScheduledRow

_encode = msgspec.msgpack.Encoder().encode
_row = msgspec.msgpack.Decoder(ScheduledRow).decode


class SqliteSchedules(ABC):
    """A `ScheduleStore`."""

    _deleted: bool

    @abstractmethod
    def _write(self, sql: str, values: tuple[Any, ...]) -> None: ...

    @abstractmethod
    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]: ...

    def schedule(self, message_id: str) -> ScheduledRow | None:
        rows = self._read("SELECT row FROM later WHERE id = ?", (message_id,))
        return _row(rows[0][0]) if rows else None

    def schedules(self) -> list[ScheduledRow]:
        return [_row(row[0]) for row in self._read("SELECT row FROM later ORDER BY deliver_at, id")]

    def open_schedules(self, low: int = 0, high: int | None = None) -> list[ScheduledRow]:
        rows = self._read(
            "SELECT row FROM later WHERE ended = 0 AND serial BETWEEN ? AND ? ORDER BY deliver_at, id",
            (low, NUMBER_MAX if high is None else high),
        )
        return [_row(row[0]) for row in rows]

    def put_schedule(self, row: ScheduledRow) -> None:
        self._write(
            "REPLACE INTO later VALUES (?, ?, ?, ?, ?)",
            (row.id, row.serial, row.deliver_at, bool(row.ended_at), _encode(row)),
        )
        self._deleted = self._deleted or bool(row.ended_at)

    def drop_schedule(self, message_id: str) -> None:
        self._write("DELETE FROM later WHERE id = ?", (message_id,))
        self._deleted = True
