"""Time that a shard has counted and that did not pass, and what was filed meanwhile: parts of its row."""

from __future__ import annotations

from msgspec import Struct


class Doubt(Struct, frozen=True, array_like=True, gc=False):
    """What has a stamp after `low` and not after `high` was filed shortly before the time became `believed`."""

    low: int
    high: int
    believed: int


class Leap(Struct, frozen=True, array_like=True, gc=False):
    """Time that was counted and did not pass: what was planned after `low` and not after `high` is younger by `ms`.

    Both by elapsed time.
    """

    low: int
    """0: the clock was set back."""
    high: int
    ms: int
