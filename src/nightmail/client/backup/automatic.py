"""Backups of a running client: when the app asks, and by themselves as often as the person chose.

Knows:   when the next one is due, and that one runs at a time.
Touches: the store on the event loop's thread, a page at a time; the file on other threads.
Never:   holds the event loop for longer than sealing one chunk takes.
"""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from nightmail.client.errors import BackupError, ClientError, Misused
from nightmail.client.events import BackedUp, BackupFailed, Event
from nightmail.client.limits import ClientLimits
from nightmail.client.link.driver import Driver
from nightmail.client.media.blob_http import BlobHttp
from nightmail.client.store.port import Store
from nightmail.client.threads import in_thread
from nightmail.e2ee.streams.backup import BackupSecret

from .making import BackupMade, BackupRun, Progress, state_with
from .schedule import EVERY_MS_MAX, EVERY_MS_MIN, BackupState, put_state, state_in
from .server_copy import Change, ServerCopies, server_file, without
from .server_parts import ServerBackup

LOOK_MS = 60_000
"""How often to look at the time: the event loop's clock stands still while the machine sleeps."""
RETRY_MS = 600_000
"""How long to wait after a backup that failed."""


def whole_path(file: str | os.PathLike[str]) -> Path:
    return Path(file).expanduser().absolute()


def check_interval(every_ms: int) -> None:
    """Raises Misused."""
    if every_ms and not EVERY_MS_MIN <= every_ms <= EVERY_MS_MAX:
        raise Misused("backups are made every minute at most, and once a year at least; or not at all")


class Backups:
    def __init__(
        self, store: Store, driver: Driver, folder: Path, tell: Callable[[Event], None], blobs: BlobHttp,
        limits: ClientLimits,
    ) -> None:  # fmt: skip
        self._store, self._driver, self._folder, self._tell = store, driver, folder, tell
        self._server = ServerCopies(blobs, limits)
        self._one_at_a_time = asyncio.Lock()
        self._woken = asyncio.Event()
        self._retry_at = 0
        self._task = asyncio.create_task(self._run(), name="nightmail backups")

    async def stop(self) -> None:
        """A backup that is under way is given up; the former file stays."""
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def state(self) -> BackupState | None:
        """What is remembered of the last backup, and how often they are made; None: there was none."""
        return state_in(self._store)

    async def make(
        self, file: str | os.PathLike[str] = "", secret: BackupSecret | None = None, progress: Progress | None = None,
        *, to_server: bool = False,
    ) -> BackupMade:  # fmt: skip
        """Make a backup; without a file, where the last one is. What changed since is added to it.

        `to_server`: it goes to the server, as blobs that only this account can fetch. The sealed file stays in the
        folder of the profile, so that only what is new is sent.

        `secret` opens it from now on, and is needed the first time; the file is then written as a whole. Raises
        BackupError, Misused.
        """
        async with self._one_at_a_time:
            former = self.state
            state = await in_thread(lambda: state_with(former, secret))
            on_server = server_file(self._folder)
            path = on_server if to_server else whole_path(file or state.file) if file or state.file else None
            if path is None:
                raise Misused("say into which file the backup goes")
            run = BackupRun(self._store, self._folder, state, path, self._driver.clock(), to_server=path == on_server)
            try:
                with self._driver.working():
                    run.begin()
                await self._driver.committed()
                await in_thread(run.prepare)
                for _ in run.steps():
                    if progress is not None:
                        progress(run.done, run.total)
                    await asyncio.sleep(0)
                await in_thread(run.finish)
                with self._driver.working() as machine:
                    made = run.save()
                    machine.backup_made(self._driver.clock())
                await self._driver.committed()
            finally:
                run.abandon()
            await self._push()
        self._tell(BackedUp(str(made.file), made.at, made.messages, made.size))
        return made

    async def _push(self) -> None:
        """Bring to the server what it lacks, if the backup is for it. Raises BackupError."""
        state = self.state
        if state is not None and state.owes:
            await self._server.push(state, self._save)

    async def _save(self, change: Change) -> BackupState:
        with self._driver.working():
            assert self.state is not None
            state = change(self.state)
            put_state(self._store, state)
        await self._driver.committed()
        return state

    async def on_server(self) -> list[ServerBackup]:
        """The account's backups on the server, the newest last, also those of other devices. Raises BackupError."""
        return await self._server.all()

    async def forget(self, name: str) -> ServerBackup:
        """Remove a backup from the server, by its id or the beginning of it. Raises BackupError, Misused."""
        async with self._one_at_a_time:
            backup = await self._server.named(name)
            await self._server.forget(backup)
            if self.state is not None:
                await self._save(without(backup))
            return backup

    async def schedule(self, every_ms: int) -> BackupState:
        """Make one so often from now on; 0: only when asked. Raises Misused, also if there was no backup yet."""
        check_interval(every_ms)
        if (state := self.state) is None:
            raise Misused("make a first backup, so that there is a file and something that opens it")
        state = replace(state, every_ms=every_ms)
        with self._driver.working():
            put_state(self._store, state)
        await self._driver.committed()
        self._woken.set()
        return state

    async def _run(self) -> None:
        """Until the client ends."""
        while True:
            try:
                wait_ms = await self._look()
            except ClientError:
                return  # the store or the client has failed, and everybody is told
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_ms, LOOK_MS) / 1_000):
                    await self._woken.wait()

    async def _look(self) -> int:
        """Make one if it is due; how long to wait then."""
        state, now = self.state, self._driver.clock()
        due = state.due if state is not None else None
        if state is None or due is None:
            return LOOK_MS
        due = max(due, self._retry_at)
        if now < due:
            return due - now
        try:
            if state.owes:
                async with self._one_at_a_time:
                    await self._push()
            else:
                await self.make()
        except BackupError as error:
            self._retry_at = now + RETRY_MS
            self._tell(BackupFailed(state.file, str(error)))
        return 0


class BackupClient:
    """A part of `Client`."""

    _backups: Backups

    @abstractmethod
    def _open_driver(self) -> Driver: ...

    @property
    def backups(self) -> Backups:
        """Encrypted backups of this profile. A restore is for a profile that no client uses (`restoring.py`)."""
        self._open_driver()
        return self._backups
