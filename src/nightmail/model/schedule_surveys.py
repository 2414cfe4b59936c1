"""What an operator asks about the scheduled messages of all accounts, and gets. Never with content."""

from __future__ import annotations

from msgspec import Struct

from .schedule_rows import Schedule, ScheduleState


class ScheduleCounts(Struct, frozen=True):
    by_state: dict[ScheduleState, int]
    is_complete: bool
    """False: there are more than were counted."""


class SurveyedSchedule(Struct, frozen=True):
    account: int
    serial: int
    schedule: Schedule


class SurveyPage(Struct, frozen=True):
    schedules: list[SurveyedSchedule]
    """In the order of their accounts. A page may be short, or empty, and yet not be the last."""
    after: tuple[int, int]
    """Ask again with this; (0, 0): there are no more."""
