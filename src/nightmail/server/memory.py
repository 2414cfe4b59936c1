"""Gives free memory back to the machine after a burst.

Knows:   that the C library keeps what was freed, in the middle of its heaps.
Touches: the allocator; nothing that is in use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

M_ARENA_MAX = -8
ARENAS = 2
"""Heaps of the C library. By default every thread may get one, and each keeps the largest that it ever needed."""


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
