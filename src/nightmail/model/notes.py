"""The delivery log's lines: who, what, when, why. No content, and never read by the fold.

A note stands for one record, not for one message and device: an acknowledgement of a hundred
entries is one line; and for the beginning or end of a connection, not for what went over it.
`trace` puts a message's life together again.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .words import Lane, Reason


class Placed(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A message was accepted, or its own copies were filed, at these places."""

    at: int
    by: int
    to: int
    lane: Lane
    n: int
    id: str
    of: str | None
    copy: bool
    blocked: bool
    places: tuple[tuple[int, int], ...]
    """(device, seq); seq 0: its mailbox was full, or the sender is blocked."""


class Taken(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A device acknowledged `low` to `high` of one lane."""

    at: int
    device: int
    lane: Lane
    low: int
    high: int
    unreadable: tuple[int, ...]


class Looked(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """A person read messages of `by`, numbers `low` to `high`, on `device`."""

    at: int
    device: int
    by: int
    lane: Lane
    low: int
    high: int


class Dropped(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """An entry ended without having been delivered."""

    at: int
    device: int
    lane: Lane
    seq: int
    reason: Reason


class Withheld(Struct, frozen=True, array_like=True, gc=False, tag=6):
    """Entries ended because their senders were blocked. Nobody is told."""

    at: int
    device: int
    lane: Lane
    seqs: tuple[int, ...]


class ConnectionChanged(Struct, frozen=True, array_like=True, gc=False, tag=5):
    """A device's connection began, or ended; of SERVER: the server began, and with it nobody was connected.

    Stands where it happened among the other lines, but follows from no record: a crash or a rebuild loses the latest.
    """

    at: int
    device: int
    here: bool


class Fetched(Struct, frozen=True, array_like=True, gc=False, tag=7):
    """A device acknowledged entries of a group's log that were for it."""

    at: int
    device: int
    group: int
    numbers: tuple[int, ...]
    """Spans: the first and the last number of each, in order."""
    unreadable: tuple[int, ...]


Note: TypeAlias = Placed | Taken | Looked | Dropped | ConnectionChanged | Withheld | Fetched
