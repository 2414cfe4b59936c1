"""What concerns a shard as a whole: time, limits, the version of its fold.

None of these has a home: each is appended to the log of the shard that it concerns.
"""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.ids import SERVER
from nightmail.model.limits import FoldLimits

from .body import Author, Body


class Ticked(Body, frozen=True, tag=48):
    """Something is due. What, follows from the rows and the batch's time."""

    said_by = Author.TIME
    since = 1

    def home(self, by: int) -> int:
        return SERVER


class LimitsSet(Body, frozen=True, tag=50):
    """The limits of the fold, from here on."""

    said_by = Author.OPERATOR
    since = 1

    limits: FoldLimits

    def home(self, by: int) -> int:
        return SERVER


class FoldRaised(Body, frozen=True, tag=51):
    """From here on records are folded as `version` says: every node supports it."""

    said_by = Author.OPERATOR
    since = 1

    version: int

    def home(self, by: int) -> int:
        return SERVER


class ClockSetBack(Body, frozen=True, tag=56):
    """A wrong clock was believed: the time is `to`. Nothing is ended by it, and no stamp goes back.

    It is said to every shard, also to those that the wrong clock has not reached.
    """

    said_by = Author.OPERATOR
    since = 2

    to: int
    """Milliseconds since 1970."""
    newest: int
    """The newest time by the wrong clock: what it has stamped is still answered behind it, on every shard."""

    def home(self, by: int) -> int:
        return SERVER


class ClockBelieved(Body, frozen=True, tag=57):
    """The clock was far ahead, and has stayed so for long enough: the time is `to`."""

    said_by = Author.TIME
    since = 2

    doubted_from: int
    """The shard's time when the doubt began: what was filed later is not older than the doubt."""
    to: int
    """Milliseconds since 1970."""

    def home(self, by: int) -> int:
        return SERVER


class ClockDoubted(Body, frozen=True, tag=60):
    """The clock is far ahead, and not believed yet. So the next owner, or the next start, knows since when."""

    said_by = Author.TIME
    since = 3

    began: int
    """The shard's time when the doubt began; 0: the clock was put right, and is not doubted any more."""

    def home(self, by: int) -> int:
        return SERVER


__all__ = ("ClockBelieved", "ClockDoubted", "ClockSetBack", "FoldRaised", "LimitsSet", "Ticked")
Bodies: TypeAlias = Ticked | LimitsSet | FoldRaised | ClockSetBack | ClockBelieved | ClockDoubted
