"""What the fold answers when it accepts a record. Refusals are in refusals.py."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from . import refusals
from .schedule_rows import ScheduleState


class Accepted(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """*Sent*: durable, and shown exactly once.

    Repeated word for word to every retry. An empty `tag`: the number was voided.
    """

    id: str
    tag: bytes
    """Empty: the number was voided."""
    at: int
    list_version: int


class Settled(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A number that its sender had declared answered; the answer itself is no longer kept."""

    id: str


class Joined(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """A device exists, under this id."""

    device: int
    list_version: int


class Done(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """It is so now."""


class Stocked(Struct, frozen=True, array_like=True, gc=False, tag=5):
    """A device's keys are published; so many one-time keys are there now."""

    one_time: int
    one_time_kem: int


class Bundle(Struct, frozen=True, array_like=True, gc=False, tag=6):
    """What a first message to a device is sealed with.

    Without `one_time`, or with the last-resort key as `kem`, that kind is used up.
    """

    device: int
    registration: int
    identity: bytes
    signed: bytes
    kem: bytes
    """A key that nobody else gets, or the last-resort key: it says which."""
    one_time: bytes | None
    """A key that nobody else gets; None: there is none left."""


class GroupAccepted(Struct, frozen=True, array_like=True, gc=False, tag=7):
    """*Sent*, to a group. Repeated word for word to every retry. An empty `tag`: the number was voided."""

    id: str
    tag: bytes
    at: int
    group_seq: int
    """Its number in the group; of keys and re-seals, the newest one then; 0: the number was voided."""


class GroupHead(Struct, frozen=True, array_like=True, gc=False, tag=8):
    """A change is the newest of the group's chain."""

    head: bytes
    length: int
    epoch: int


class ScheduleTaken(Struct, frozen=True, array_like=True, gc=False, tag=12):
    """A message waits for its time. Repeated word for word to every retry."""

    id: str
    """Of the first request with the same idempotency key."""
    serial: int
    """Its number among the account's schedules: news about them are told by it."""
    deliver_at: int


class ScheduleFate(Struct, frozen=True, array_like=True, gc=False):
    """How far one schedule has come."""

    serial: int
    id: str
    by: int
    """The device that sealed it last; 0: it is a call to a webhook."""
    state: ScheduleState
    is_stale: bool
    """It waits to be sealed again."""
    deliver_at: int
    error: str
    """A word: why it failed."""
    n: int
    """Its number in the stream of `by`, once it was fired into a conversation."""
    at: int
    """Its stamp there."""
    group_seq: int
    """Its number in the group, if it was fired into one."""


class SchedulesFound(Struct, frozen=True, array_like=True, gc=False, tag=13):
    """Those of the schedules asked for that are not forgotten."""

    schedules: tuple[ScheduleFate, ...]


Answer: TypeAlias = (
    Accepted | Settled | Joined | Done | Stocked | Bundle | GroupAccepted | GroupHead | ScheduleTaken | SchedulesFound
)  # fmt: skip
Said: TypeAlias = Answer | refusals.AnyRefusal
