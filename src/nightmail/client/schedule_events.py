"""What an app is told about messages for later. Once it is delivered, it is a `Message` like any other."""

from __future__ import annotations

from msgspec import Struct

from nightmail.model.schedule_rows import ScheduleState


class ScheduleEvent(Struct, frozen=True):
    """Something happened to a message for later."""

    message_id: str
    peer: int
    """The account or the group that it is for; 0: not known here."""


class ScheduleChanged(ScheduleEvent, frozen=True):
    """It has come to this state. PENDING: the server has it now, or asks for it to be sealed again (`is_stale`)."""

    state: ScheduleState
    reason: str
    """Of a failure, a word: `stale_devices`, `device_removed`, `time_past`, `not_member` and others."""
    deliver_at: int
    is_stale: bool = False


class CancelRefused(ScheduleEvent, frozen=True):
    """It was to be cancelled, and that was too late: `reason` is already_sent, in_progress, already_ended or
    unknown_schedule."""

    reason: str
