"""Gives free memory back to the machine after a burst, and collects garbage in small steps.

Knows:   that the C library keeps what was freed, in the middle of its heaps; what a collection costs.
Touches: the allocator and the collector; nothing that is in use.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

M_ARENA_MAX = -8
ARENAS = 2
"""Heaps of the C library. By default every thread may get one, and each keeps the largest that it ever needed."""

THRESHOLDS = (50_000, 1_000, 4_000)
"""Of Python's own collections. They come in the middle of a turn and look at 50,000 new objects or more, so they are
left for a turn that makes as many."""
YOUNG = 2_000
"""New objects from which on the end of a turn collects them. Each costs a quarter of a microsecond, or four times as
much while other processes have the cache."""
OLDER_EVERY = 2
"""So often, the objects that outlived the collections since are looked at once more. Then they count as old, and Python
looks at them when there are many more of them."""


class Collector:
    """Messages and connections make no cycles, so a collection rarely finds anything: what matters is its length."""

    def __init__(self) -> None:
        self._collections = 0

    def start(self) -> None:
        """What the start made is never looked at again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)

    def end_turn(self) -> None:
        """Often, so that there is little to look at: live messages wait for a collection."""
        if gc.get_count()[0] >= YOUNG:
            self._collections += 1
            gc.collect(0 if self._collections % OLDER_EVERY else 1)


def limit_arenas() -> None:
    """At the start, before there are threads."""
    if (limit := _function("mallopt")) is not None:
        limit(M_ARENA_MAX, ARENAS)


def trim() -> None:
    """Takes some milliseconds and no lock of Python's: for a thread of its own."""
    if (give_back := _function("malloc_trim")) is not None:
        give_back(ctypes.c_size_t(0))


def _function(name: str) -> Callable[..., int] | None:
    """None where the C library has no such function."""
    return getattr(ctypes.CDLL(None), name, None)
