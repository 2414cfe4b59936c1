"""When a shard may go on to a newer fold: as soon as every node supports it."""

from __future__ import annotations

from collections.abc import Collection


def fold_to_raise(present: int, announced: Collection[int]) -> int | None:
    """The newest fold that every node supports, if it is newer than the shard's. None: leave it.

    Without any announcement nothing is known, and nothing is raised.
    """
    common = min(announced, default=present)
    return common if common > present else None
