"""Work that blocks, for callers on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Also if the caller is cancelled meanwhile: the thread ends before anything else is done with what it uses.
    `stop` makes it end sooner then."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # marks it as seen: the caller is gone
        raise
