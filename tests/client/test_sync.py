"""The face for scripts: the same client, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from nightmail.client.backup.looking import open_backup
from nightmail.client.errors import Misused, ProfileInUse
from nightmail.client.messages import Tick
from nightmail.client.sync import SyncClient
from tests.client.backup.saved import CODE
from tests.client.harbour import QUICK, Harbour, harbour


def test_a_script_sends_and_receives_without_asyncio(tmp_path: Path) -> None:
    def script(place: Harbour, profiles: list[Path]) -> None:
        servers = [place.address]
        with (
            SyncClient(profiles[0], servers, limits=QUICK) as alice,
            SyncClient(profiles[1], servers, limits=QUICK) as bob,
        ):
            sent = alice.send("bob", "hello")
            message = bob.receive(timeout=120)
            assert message.text == "hello"
            alice.wait(sent, timeout=120)
            assert bob.unread() == 1
            assert bob.read(message.peer) == 1
            alice.wait(sent, Tick.READ, timeout=120)
            assert [m.text for m in alice.history("bob")] == ["hello"]
            assert [c.handle for c in alice.conversations()] == ["bob"]
            with pytest.raises(TimeoutError):
                bob.receive(timeout=0.01)
            with pytest.raises(ProfileInUse):
                SyncClient(profiles[0], servers).__enter__()
        with pytest.raises(Misused):
            alice.send("bob", "too late")

    async def story() -> None:
        async with harbour() as place:
            profiles = [place.profile(tmp_path, "alice"), place.profile(tmp_path, "bob")]
            await asyncio.to_thread(script, place, profiles)

    before = threading.active_count()
    asyncio.run(story())
    assert threading.active_count() == before


def test_a_script_backs_its_profile_up(tmp_path: Path) -> None:
    def script(place: Harbour, profile: Path) -> None:
        with SyncClient(profile, [place.address], limits=QUICK) as alice:
            assert alice.backup_state() is None
            with pytest.raises(Misused):
                alice.schedule_backups(86_400_000)  # there is no file yet
            alice.wait(alice.send("alice", "note"), Tick.SENT, timeout=120)
            seen: list[tuple[int, int]] = []
            file = tmp_path / "alice.backup"
            made = alice.make_backup(file, CODE, lambda done, total: seen.append((done, total)))
            assert (made.file, made.messages, made.is_whole, seen[-1]) == (file, 1, True, (1, 1))
            assert open_backup(file, CODE).info.handle == "alice"
            assert alice.schedule_backups(86_400_000) == alice.backup_state()
            state = alice.backup_state()
            assert state is not None
            assert (state.file, state.every_ms, state.messages) == (str(file), 86_400_000, 1)
            assert alice.make_backup().segments == 2
        with pytest.raises(Misused):
            alice.make_backup()

    async def story() -> None:
        async with harbour() as place:
            await asyncio.to_thread(script, place, place.profile(tmp_path, "alice"))

    asyncio.run(story())
