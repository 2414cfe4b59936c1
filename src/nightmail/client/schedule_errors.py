"""What can go wrong with a message for later.

ClientError
└── ScheduleError
    ├── BadTime              no time, two times, one that has passed or is too far ahead; nothing was queued
    └── NotCancelled         it is too late, or there is no such message
"""

from __future__ import annotations

from .errors import ClientError


class ScheduleError(ClientError):
    """`word` says which, for programs."""

    def __init__(self, word: str, sentence: str) -> None:
        self.word = word
        super().__init__(sentence)


class BadTime(ScheduleError):
    """`word`: no_time, two_times, not_a_time, time_past or too_far_off."""


class NotCancelled(ScheduleError):
    """`word`: already_sent, in_progress, already_ended or unknown_schedule."""

    def __init__(self, message_id: str, word: str) -> None:
        self.message_id = message_id
        super().__init__(word, f"{message_id} was not cancelled: {word}")
