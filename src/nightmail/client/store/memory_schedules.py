"""What the store in memory keeps of messages for later. A part of `memory.py`, whose journal it shares.

Knows:   the table of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from nightmail.model.forms import NUMBER_MAX

from .schedule_rows import ScheduledRow


class MemorySchedules(ABC):
    """A `ScheduleStore`."""

    @abstractmethod
    def _table(self, name: str) -> dict[Any, Any]: ...

    @abstractmethod
    def _put(self, name: str, key: Any, value: Any) -> None: ...

    @abstractmethod
    def _drop(self, name: str, key: Any) -> None: ...

    def schedule(self, message_id: str) -> ScheduledRow | None:
        return self._table("schedule").get(message_id)

    def schedules(self) -> list[ScheduledRow]:
        rows = cast("dict[str, ScheduledRow]", self._table("schedule"))
        return sorted(rows.values(), key=lambda row: (row.deliver_at, row.id))

    def open_schedules(self, low: int = 0, high: int | None = None) -> list[ScheduledRow]:
        last = NUMBER_MAX if high is None else high
        return [row for row in self.schedules() if not row.ended_at and low <= row.serial <= last]

    def put_schedule(self, row: ScheduledRow) -> None:
        self._put("schedule", row.id, row)

    def drop_schedule(self, message_id: str) -> None:
        self._drop("schedule", message_id)
