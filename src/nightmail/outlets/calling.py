"""Calls on an event loop: a task for each, and their ends told together at the end of a turn.

Touches: the event loop it was made on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from . import outcomes
from .caller import HttpCaller
from .outcomes import CallResult
from .ports import Ended, WebhookCall

log = logging.getLogger("nightmail.outlets")


class Calling:
    def __init__(self, caller: HttpCaller, ended: Ended) -> None:
        self._caller, self._tell = caller, ended
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: list[tuple[int, CallResult]] = []

    def begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        for number, call in calls:
            task = self._loop.create_task(self._make(number, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _make(self, number: int, call: WebhookCall) -> None:
        try:
            outcome = await self._caller.call(call)
        except Exception as mistake:
            log.error("a call could not be made", exc_info=mistake)
            outcome = outcomes.BROKEN_OFF
        if not self._ended:
            self._loop.call_soon(self._flush)
        self._ended.append((number, outcome))

    def _flush(self) -> None:
        ended, self._ended = self._ended, []
        self._tell(ended)

    async def close(self) -> None:
        """Calls under way are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._caller.close()
