"""Backups that a running client makes: when it is asked, and by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from nightmail.client import Client
from nightmail.client.backup.looking import open_backup
from nightmail.client.backup.schedule import put_state, state_in
from nightmail.client.errors import BackupError, Misused
from nightmail.client.events import BackedUp, BackupFailed, Event
from nightmail.client.profile.profile import Profile
from nightmail.e2ee.streams.backup import BY_PASSPHRASE, BackupSecret
from tests.client.backup.saved import CODE
from tests.client.harbour import QUICK, Harbour, harbour

T = TypeVar("T")
HORSE = BackupSecret(BY_PASSPHRASE, "correct horse")


async def soon(waited_for: Awaitable[T]) -> T:
    async with asyncio.timeout(60):
        return await waited_for


async def told(client: Client, kind: type[T]) -> T:
    """The next event of a kind."""
    heard: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def hear(event: T) -> None:
        if not heard.done():
            heard.set_result(event)

    client.on(kind)(hear)
    return await soon(heard)


def alone(place: Harbour, folder: Path) -> Client:
    return Client(place.profile(folder, "alice"), [place.address], limits=QUICK)


def test_an_app_makes_a_backup_with_progress_and_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, alone(place, tmp_path) as alice:
            for n in range(20):
                await (await alice.send("alice", f"note {n}")).sent()
            seen: list[tuple[int, int]] = []
            events: list[Event] = []
            alice.on(BackedUp)(events.append)
            file = tmp_path / "alice.backup"
            made = await soon(alice.backups.make(file, CODE, lambda done, total: seen.append((done, total))))
            assert (made.messages, made.is_whole, seen[-1]) == (20, True, (20, 20))
            again = await soon(alice.backups.make())
            assert (again.file, again.segments, again.saved) == (file, 2, 0)
            assert open_backup(file, CODE).info.handle == "alice"
            assert events[0] == BackedUp(str(file), made.at, 20, made.size)

    asyncio.run(story())


def test_a_schedule_needs_a_first_backup_and_a_sensible_interval(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, alone(place, tmp_path) as alice:
            for wrong in (alice.backups.schedule(86_400_000), alice.backups.make(), alice.backups.make(secret=HORSE)):
                with pytest.raises(Misused):
                    await wrong
            await soon(alice.backups.make(tmp_path / "alice.backup", HORSE))
            with pytest.raises(Misused):
                await alice.backups.schedule(1)
            state = await alice.backups.schedule(86_400_000)
            assert (state.every_ms, alice.backups.state) == (86_400_000, state)

    asyncio.run(story())


def overdue(folder: Path, file: Path) -> None:
    """The last backup is from long ago, by the profile's own memory."""
    profile = Profile(folder)
    state = state_in(profile.store)
    assert state is not None
    put_state(profile.store, replace(state, at=1_000, every_ms=60_000, file=str(file)))
    profile.store.commit()
    profile.close()


def test_a_backup_that_is_due_is_made_when_a_client_starts(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            folder, file = place.profile(tmp_path, "alice"), tmp_path / "alice.backup"
            async with Client(folder, [place.address], limits=QUICK) as alice:
                await soon(alice.backups.make(file, CODE))
                await (await alice.send("alice", "new")).sent()
            overdue(folder, file)
            async with Client(folder, [place.address], limits=QUICK) as alice:
                event = await told(alice, BackedUp)
                assert (event.file, event.messages) == (str(file), 1)
                assert open_backup(file, CODE).info.segments == 2

    asyncio.run(story())


def test_a_due_backup_that_cannot_be_written_is_told_and_the_client_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            folder, file = place.profile(tmp_path, "alice"), tmp_path / "alice.backup"
            async with Client(folder, [place.address], limits=QUICK) as alice:
                await soon(alice.backups.make(file, CODE))
            overdue(folder, tmp_path / "missing" / "alice.backup")
            async with Client(folder, [place.address], limits=QUICK) as alice:
                event = await told(alice, BackupFailed)
                assert "cannot be written" in event.why
                await soon((await alice.send("alice", "still here")).sent())
                with pytest.raises(BackupError):
                    await alice.backups.make()
                assert (await soon(alice.backups.make(file))).messages == 1

    asyncio.run(story())


def test_a_client_that_is_closed_in_the_middle_leaves_the_former_file(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            file = tmp_path / "alice.backup"
            async with alone(place, tmp_path) as alice:
                await soon(alice.backups.make(file, CODE))
                before = file.read_bytes()
                running = asyncio.create_task(alice.backups.make())
                await asyncio.sleep(0)
                running.cancel()
                await asyncio.wait([running])
            assert file.read_bytes() == before

    asyncio.run(story())
    assert [each.name for each in tmp_path.glob(".*.new")] == []
