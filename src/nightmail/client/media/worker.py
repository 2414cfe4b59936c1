"""Files of a running client: every errand that is due is worked at, a few at once, and again after a failure.

Knows:   what is under way, and when to try again.
Touches: one task, and one for each errand under way.
Never:   works twice at one errand; forgets one: they are in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import TypeAlias

from nightmail.client.errors import ClientError, Misused
from nightmail.client.events import Connected, Event
from nightmail.client.limits import ClientLimits
from nightmail.client.link.driver import Driver
from nightmail.client.machine.retry import retry_ms
from nightmail.client.media_events import FileChanged

from .jobs import MediaJobs
from .rows import ENDING, ERASING, FETCH, UPLOAD, VERIFIED, FileState

AT_ONCE = 3
"""Uploads, and likewise downloads, under way at a time."""
LOOK_S = 60.0
"""How often to look without a reason: a blob may only be removed once its message is settled."""

ENDED = (FileState.FAILED, FileState.GONE)

Key: TypeAlias = tuple[str, str]
Work: TypeAlias = Callable[[], Awaitable[None]]
ADDRESS = "address"


class MediaWorker:
    def __init__(self, jobs: MediaJobs, driver: Driver, limits: ClientLimits) -> None:
        self._jobs, self._driver, self._limits = jobs, driver, limits
        self._under_way: dict[Key, asyncio.Task[None]] = {}
        self._saving: dict[str, asyncio.Task[Path]] = {}
        """Message → its file is on its way to where a person wants it."""
        self._failures: dict[Key, int] = {}
        self._waiting: dict[Key, float] = {}
        """Errand → when to try again, by the event loop's clock."""
        self._woken, self._chance = asyncio.Event(), SystemRandom()
        self._slots = {UPLOAD: asyncio.Semaphore(AT_ONCE), FETCH: asyncio.Semaphore(AT_ONCE)}
        self._task = asyncio.create_task(self._run(), name="nightmail files")

    async def stop(self) -> None:
        """What is under way goes on with the next start."""
        tasks = [self._task, *self._under_way.values(), *self._saving.values()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def hear(self, event: Event) -> None:
        """Something happened: look for work."""
        if isinstance(event, Connected):
            self._waiting.clear()
            self._failures.clear()
        if isinstance(event, Connected | FileChanged):
            if isinstance(event, FileChanged) and event.state in ENDED and not self._is_known(event.message_id):
                self._cancel(event.message_id)
            self._woken.set()

    async def fetched(self, message_id: str) -> None:
        """Fetch a file now, or wait for the fetch that is under way. Raises what that raises."""
        key = (FETCH, message_id)
        self._waiting.pop(key, None)
        task = self._under_way.get(key) or self._begin(key, partial(self._jobs.fetch, message_id))
        await asyncio.shield(task)

    async def save(self, message_id: str, to: Path, *, overwrite: bool) -> Path:
        """What is in the profile."""
        return await self._jobs.save(message_id, to, overwrite=overwrite)

    async def save_directly(self, message_id: str, to: Path, *, overwrite: bool) -> Path:
        """What is not. Raises Misused if it is being saved."""
        if message_id in self._saving:
            raise Misused("this file is being saved")

        async def save() -> Path:
            async with self._slots[FETCH]:
                return await self._jobs.save_directly(message_id, to, overwrite=overwrite)

        task = self._saving[message_id] = asyncio.create_task(save(), name="nightmail save")
        task.add_done_callback(lambda _: self._saving.pop(message_id))
        return await task

    async def _run(self) -> None:
        """Until the client ends."""
        while True:
            self._woken.clear()
            try:
                wait_s = self._look()
            except ClientError:
                return  # the store or the client has failed, and everybody is told
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()

    def _look(self) -> float:
        """Begin everything that is due; how long to wait then, in seconds."""
        now, wait_s = asyncio.get_running_loop().time(), LOOK_S
        for key, work in list(self._due()):
            if key in self._under_way:
                continue
            if (at := self._waiting.get(key, 0.0)) > now:
                wait_s = min(wait_s, at - now)
                continue
            self._begin(key, work)
        return wait_s

    def _due(self) -> Iterator[tuple[Key, Work]]:
        jobs, rows = self._jobs, self._jobs.rows
        with self._driver.working() as machine:
            media = machine.media(self._driver.clock())
        for each in media.wanted():
            yield (ADDRESS, each.message_id), partial(jobs.address, each)
        for blob in rows.due(VERIFIED):
            yield (VERIFIED, blob), partial(jobs.say_verified, blob)
        for blob in rows.due(ENDING):
            if media.is_to_end(blob) is not None:
                yield (ENDING, blob), partial(jobs.end, blob)
        for blob in rows.due(ERASING):
            yield (ERASING, blob), partial(jobs.erase, blob)
        for message_id in rows.uploads():
            yield (UPLOAD, message_id), partial(jobs.send, message_id)
        for message_id in rows.due(FETCH):
            yield (FETCH, message_id), partial(jobs.fetch, message_id)

    def _begin(self, key: Key, work: Work) -> asyncio.Task[None]:
        task = self._under_way[key] = asyncio.create_task(self._work(key, work), name=f"nightmail {key[0]}")
        task.add_done_callback(partial(self._ended, key))
        return task

    async def _work(self, key: Key, work: Work) -> None:
        slot = self._slots.get(key[0])
        if slot is None:
            await work()
        else:
            async with slot:
                await work()

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._under_way[key]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            if not isinstance(error, ClientError):
                told = {"message": "a mistake in the work at a file", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            wait = retry_ms(failures, self._limits, self._chance) / 1_000
            self._waiting[key] = asyncio.get_running_loop().time() + wait
        else:
            self._failures.pop(key, None)
            self._waiting.pop(key, None)
        self._woken.set()

    def _is_known(self, message_id: str) -> bool:
        """False: it was given up, or its message's life is over."""
        return self._jobs.rows.file(message_id).state not in (FileState.ABSENT, FileState.FAILED)

    def _cancel(self, message_id: str) -> None:
        """Nobody wants this file any more."""
        for what in (UPLOAD, FETCH):
            if (task := self._under_way.get((what, message_id))) is not None:
                task.cancel()
