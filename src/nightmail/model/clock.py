"""What a server knows of the time: its machine's clock, and the time that it goes by."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class ClockState(Enum):
    """What is thought of the wall clock."""

    BELIEVED = "believed"
    AHEAD = "ahead"
    """It is too far ahead to be believed at once."""
    BEHIND = "behind"
    """It is far behind the shard's time, which waits for it: what is due comes late."""


class ClockSeen(Struct, frozen=True):
    """Both times, in milliseconds since 1970."""

    state: ClockState
    wall_ms: int
    time_ms: int
    """The time that the server goes by."""
