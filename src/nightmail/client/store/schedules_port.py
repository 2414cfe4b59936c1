"""The port to what a store keeps of messages for later. A part of `Store`, whose transaction it shares."""

from __future__ import annotations

from typing import Protocol

from .schedule_rows import ScheduledRow


class ScheduleStore(Protocol):
    def schedule(self, message_id: str) -> ScheduledRow | None: ...

    def schedules(self) -> list[ScheduledRow]:
        """All of them, by the time that they are for."""
        ...

    def open_schedules(self, low: int = 0, high: int | None = None) -> list[ScheduledRow]:
        """Those that have not ended, with a serial from `low` to `high`, or with any; in the same order."""
        ...

    def put_schedule(self, row: ScheduledRow) -> None: ...

    def drop_schedule(self, message_id: str) -> None: ...
