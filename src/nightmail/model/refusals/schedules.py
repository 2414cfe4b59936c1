"""Every no that concerns messages for later, and dead letters."""

from __future__ import annotations

from .refusal import Refusal


class UnknownSchedule(Refusal, frozen=True, tag=0x80):
    """The account has no such schedule, or it was forgotten."""

    word = "unknown_schedule"
    id: str

    @property
    def sentence(self) -> str:
        return f"there is no scheduled message {self.id}"


class AlreadySent(Refusal, frozen=True, tag=0x81):
    """It was delivered: too late to cancel it, or to seal it again."""

    word = "already_sent"
    id: str

    @property
    def sentence(self) -> str:
        return f"{self.id} was sent already"


class InProgress(Refusal, frozen=True, tag=0x82):
    """It is being delivered at this moment."""

    word = "in_progress"
    id: str

    @property
    def sentence(self) -> str:
        return f"{self.id} is being delivered"


class AlreadyEnded(Refusal, frozen=True, tag=0x83):
    """It has failed, or was cancelled."""

    word = "already_ended"
    id: str

    @property
    def sentence(self) -> str:
        return f"{self.id} has ended without being delivered"


class TooManySchedules(Refusal, frozen=True, tag=0x84):
    """The account has as many open schedules, of all or of webhooks, as it may."""

    word = "too_many_schedules"
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} of these at once"


class SchedulesFull(Refusal, frozen=True, tag=0x85):
    """The open schedules of the account would have more content than they may."""

    word = "schedules_full"
    limit: int

    @property
    def sentence(self) -> str:
        return f"scheduled messages of an account can have {self.limit} bytes"


class TooFarOff(Refusal, frozen=True, tag=0x86):
    word = "too_far_ahead"
    limit_ms: int

    @property
    def sentence(self) -> str:
        return f"this can be scheduled at most {self.limit_ms} ms ahead"


class TimePast(Refusal, frozen=True, tag=0x87):
    """The time that it is scheduled for is over."""

    word = "time_past"
    now: int
    """The server's time."""

    @property
    def sentence(self) -> str:
        return "the time that it is scheduled for is over"


class KeyReused(Refusal, frozen=True, tag=0x88):
    """The idempotency key came with another request before."""

    word = "key_reused"

    @property
    def sentence(self) -> str:
        return "this idempotency key was used for another request"


class UnknownLetter(Refusal, frozen=True, tag=0x90):
    word = "unknown_letter"
    offset: int

    @property
    def sentence(self) -> str:
        return f"there is no dead letter {self.offset}"


class LetterSettled(Refusal, frozen=True, tag=0x91):
    """It was replayed or discarded before, or has failed for good."""

    word = "letter_settled"
    offset: int

    @property
    def sentence(self) -> str:
        return f"the dead letter {self.offset} is settled"


class NotReplayable(Refusal, frozen=True, tag=0x92):
    """There is nothing to deliver: its author was told that it failed, it was for a group, or it is no message."""

    word = "not_replayable"
    offset: int

    @property
    def sentence(self) -> str:
        return f"the dead letter {self.offset} cannot be replayed"
