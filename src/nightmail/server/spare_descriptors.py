"""Keeps some file descriptors for the disk: connections may have all others.

Knows:   that the kernel gives a new connection the lowest free number, so a high number means that few are left.
Touches: a connection that is one too many, by cutting it off.
Never:   lets strangers take what the log, the rows and the people who are connected need.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from typing import Any, cast

from .observe import log

BACKLOG = 1_024
"""Connections that wait in the kernel: uvloop takes one of them in a turn. One that finds no place there is lost, and
its client tries again after a second."""
SPARE = 320
"""Descriptors that no connection may have, if the process may have many."""
TOLD_S = 60.0
"""At most one line in the log in this time."""


def first_spare(limit: int) -> int:
    """The first descriptor number that no connection may have, in a process that may have `limit`."""
    return limit - max(16, min(SPARE, limit // 4))


class Descriptors:
    """How many connections there may be, and whether the operator was told of those that were turned away."""

    def __init__(self, limit: int | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
        self.highest = first_spare(self.limit)
        self._now, self._told_at, self._turned_away = now, -TOLD_S, 0

    def guard(self, build: Callable[[], Any]) -> asyncio.Protocol:
        """The protocol of a new connection, which becomes that of `build` if there is room."""
        return _Guard(self, build)

    def turn_away(self) -> None:
        self._turned_away += 1
        if self._now() - self._told_at >= TOLD_S:
            self._told_at = self._now()
            log.error(
                "file descriptors run out; new connections are turned away, and those that are here are served",
                extra={"limit": self.limit, "turned_away": self._turned_away},
            )


class _Guard(asyncio.Protocol):
    def __init__(self, descriptors: Descriptors, build: Callable[[], Any]) -> None:
        self._descriptors, self._build = descriptors, build

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.fileno() >= self._descriptors.highest:
            self._descriptors.turn_away()
            transport.abort()
            return
        protocol = self._build()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
