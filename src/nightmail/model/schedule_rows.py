"""What is remembered of messages for later, on their author's shard. `rows.py` says what holds for every row.

A schedule is one row with its content, and one byte in a page: many states are looked at together when a person lists
them. Its name is a row of its own, by which it is found.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct, field

from .envelopes import Envelope
from .ids import DEVICE_BITS
from .words import Kind

SCHEDULED_FROM = 1 << 52
"""The third count of a stream begins here: messages that were scheduled take their numbers from it when they fire.

So they stand outside the count that their author keeps, and receipts, read marks and traces name them like others.
"""
PAGE_STATES = 256
"""Schedules whose states are listed in one row."""
NO_STATE = 0
"""In a page: the schedule is forgotten."""


class ScheduleState(IntEnum):
    """The numbers are on disk: only ever add. 0 is none (`NO_STATE`)."""

    PENDING = 1
    """Its time has not come; or it has, and it must be sealed again first."""
    PROCESSING = 2
    """It was fired, or is being called out, and the outcome is not known yet."""
    DELIVERED = 3
    CANCELLED = 4
    FAILED = 5

    @property
    def is_open(self) -> bool:
        return self < ScheduleState.DELIVERED


class PairTarget(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Into the conversation with an account."""

    to: int


class GroupTarget(Struct, frozen=True, array_like=True, gc=False, tag=2):
    group: int


class CallTarget(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """To a webhook."""

    url: str


Target: TypeAlias = PairTarget | GroupTarget | CallTarget


class PairContent(Struct, frozen=True, array_like=True, gc=False, tag=1):
    list_version: int
    envelopes: tuple[Envelope, ...]
    own_envelopes: tuple[Envelope, ...]


class GroupContent(Struct, frozen=True, array_like=True, gc=False, tag=2):
    epoch: int
    head: bytes
    ciphertext: bytes


class CallContent(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """What a webhook gets. The server can read it: it has no other way to call somebody else's server."""

    content_type: str
    content: bytes


Content: TypeAlias = PairContent | GroupContent | CallContent


class Schedule(Struct, array_like=True):
    """Under (account, serial)."""

    id: str
    by: int
    """The device that sealed it; SERVER: it is a call."""
    tag: bytes
    kind: Kind
    life_ms: int
    target: Target
    made_at: int
    deliver_at: int
    size: int
    """Bytes of its content."""
    content: Content | None
    """None once it is final; of a failed call, once its dead letter is settled."""
    state: ScheduleState = ScheduleState.PENDING
    next_at: int = 0
    """It is looked at then, and nothing is done with it before. Of one that has ended: it is forgotten then; 0: not
    before its dead letter is settled."""
    key: int = 0
    """The number of its idempotency key; 0: it has none."""
    retry_count: int = 0
    """Calls after the first one; of a conversation, how many times it came back to be sealed again."""
    attempt: int = 0
    """The present call, from 1 on."""
    is_calling: bool = False
    """The outcome of the present call is not known yet."""
    is_stale: bool = False
    """It waits to be sealed again."""
    first_attempt: int = 0
    last_attempt: int = 0
    ended_at: int = 0
    n: int = 0
    """Its number in the author's stream, once it was fired into a conversation."""
    at: int = 0
    """Its stamp there."""
    error: str = ""
    """A word: why it failed, or why the last call did."""
    letter: int = 0
    """The offset of its dead letter; 0: it has none."""
    group_seq: int = 0
    """Its number in the group, once it was fired into one."""


class AccountSchedules(Struct, array_like=True):
    """Of one account."""

    last: int = 0
    """The newest serial."""
    first: int = 1
    """Every older one is forgotten."""
    open: int = 0
    """How many are PENDING or PROCESSING."""
    calls: int = 0
    """Of these, to webhooks."""
    bytes: int = 0
    """Of their content."""
    sequences: dict[int, int] = field(default_factory=dict)
    """Device index → the highest sequence in the ids of its schedules. An id with a higher one is new."""


class SchedulePage(Struct, array_like=True):
    """The states of 256 schedules, under (account, page): one byte each."""

    states: bytearray = field(default_factory=lambda: bytearray(PAGE_STATES))
    sweep_at: int = 0
    """It is looked through for schedules to forget then; 0: none of them has ended."""


class ScheduleName(Struct, array_like=True):
    """Which schedule has an id or an idempotency key, under (account, `id_number` or `key_number`)."""

    name: str
    serial: int


INDEX_MASK = (1 << DEVICE_BITS) - 1
SEQUENCE_BITS = 40
"""A sequence has 12 digits at most."""
CHECK_BITS = 10
CHECK_MASK = (1 << CHECK_BITS) - 1
_KEYS = 1 << SEQUENCE_BITS + CHECK_BITS + DEVICE_BITS


def device_and_sequence(ident: str) -> tuple[int, int]:
    """Which of its account's devices made an id, and its sequence there."""
    device, _, sequence, _ = ident.split(":")
    return int(device, 16) & INDEX_MASK, int(sequence)


def id_number(ident: str) -> int:
    """Grows with the sequence, so that new names of a device stand together, and none has the number of an older one.

    Two ids of one device with the same sequence, which no honest client makes, may have the same number: then the
    second is refused as reused.
    """
    return number_of(ident, *device_and_sequence(ident))


def number_of(ident: str, index: int, sequence: int) -> int:
    """Likewise, of an id that was taken apart."""
    return (index << SEQUENCE_BITS | sequence) << CHECK_BITS | crc32(ident.encode()) & CHECK_MASK


def key_number(key: str) -> int:
    """Never 0, nor the number of an id. Two keys of one account with the same number are refused as reused."""
    digest = hashlib.blake2b(key.encode(), digest_size=8, person=b"key").digest()
    return _KEYS | int.from_bytes(digest, "big") >> 2
