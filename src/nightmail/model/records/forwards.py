"""Forwards: what one shard tells another."""

from __future__ import annotations

from typing import TypeAlias

from .accounts import HandleReleased
from .body import Author, Body
from .firing import ToldOfSchedules
from .members import ToldOfGroups
from .messages import Copied
from .receipts import Receipted

Told: TypeAlias = Copied | Receipted | HandleReleased | ToldOfGroups | ToldOfSchedules
"""All that shards may tell each other. A new one travels only once every node folds with a version that knows it."""


class Forwarded(Body, frozen=True, tag=34):
    """The `k`-th thing that shard `source` told this shard."""

    said_by = Author.SHARD
    since = 1

    source: int
    k: int
    body: Told

    def home(self, by: int) -> int:
        return self.body.home(by)


__all__ = ("Forwarded", "Told")
Bodies: TypeAlias = Forwarded
