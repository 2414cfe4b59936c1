"""Backups on a real server: brought there whatever breaks, fetched as they were, and never half forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nightmail.client import Client
from nightmail.client.backup.looking import open_backup
from nightmail.client.backup.making import make_backup, state_with
from nightmail.client.backup.restoring import restore
from nightmail.client.backup.schedule import EVERY_MS_MIN, BackupState, put_state, state_in
from nightmail.client.backup.server_copy import Change, ServerCopies, server_file, without
from nightmail.client.backup.server_parts import HEAD, ServerBackup, head_of_part, part_in, together
from nightmail.client.errors import BackupDamaged, BackupError, BackupOlder, Misused, Unreachable
from nightmail.client.events import BackedUp
from nightmail.client.limits import ClientLimits
from nightmail.client.media.blob_http import BlobHttp, KeptBackup
from nightmail.client.profile.profile import Profile
from nightmail.client.store.port import Store
from nightmail.e2ee.streams.backup import BY_PASSPHRASE, BackupSecret
from tests.client.backup.saved import AT, CODE, a_message, fill
from tests.server.rig import Person, Town

LIMITS = ClientLimits(retry_ms_min=1, retry_ms_max=2)


class Phone:
    """A profile with messages, and its way to the server."""

    def __init__(self, town: Town, who: Person, folder: Path) -> None:
        self.folder = folder
        self.profile = Profile(folder, None)
        self.store: Store = self.profile.store
        self.copies = copies_of(town, who)
        self._now = AT

    def save(self) -> Callable[[Change], Any]:
        async def save(change: Change) -> BackupState:
            state = state_in(self.store)
            assert state is not None
            state = change(state)
            put_state(self.store, state)
            self.store.commit()
            return state

        return save

    def make(self, secret: BackupSecret | None = None) -> None:
        former = state_in(self.store)
        state = state_with(former, secret or (None if former else CODE))
        self._now += 1_000
        make_backup(self.store, None, state, server_file(self.folder), self._now, to_server=True)

    def push(self, copies: ServerCopies | None = None) -> None:
        state = state_in(self.store)
        assert state is not None
        asyncio.run((copies or self.copies).push(state, self.save()))

    def all(self) -> list[ServerBackup]:
        return asyncio.run(self.copies.all())

    def fetch(self, backup: ServerBackup, name: str = "fetched") -> Path:
        file = self.folder / name
        file.unlink(missing_ok=True)
        asyncio.run(self.copies.fetch(backup, file))
        return file

    @property
    def file(self) -> bytes:
        return server_file(self.folder).read_bytes()


def copies_of(town: Town, who: Person) -> ServerCopies:
    return ServerCopies(BlobHttp([f"http://127.0.0.1:{town.port}"], who.bearer, None, LIMITS), LIMITS)


@pytest.fixture
def phone(town: Town, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Phone]:
    made = Phone(town, town.register(f"{request.node.name[:40]}-{tmp_path.name[-4:]}".lower()), tmp_path / "phone")
    fill(made.store)
    yield made
    made.profile.close()


def test_an_increment_sends_only_what_is_new_and_the_file_comes_back_as_it_is(phone: Phone) -> None:
    phone.make()
    phone.push()
    (first,) = phone.all()
    phone.store.put_message(a_message(7))
    phone.store.commit()
    phone.make()
    phone.push()
    (second,) = phone.all()
    assert (second.id, len(second.parts), second.size) == (first.id, 2, len(phone.file))
    assert second.parts[0] == first.parts[0]
    assert second.parts[1].size == len(phone.file) - first.size < first.size + 2_000
    fetched = phone.fetch(second)
    assert (fetched.read_bytes(), fetched.stat().st_mode & 0o777) == (phone.file, 0o600)
    assert open_backup(fetched, CODE).info.messages == 4


def test_a_backup_written_again_replaces_the_former_one_which_goes_only_after_it(phone: Phone) -> None:
    phone.make()
    phone.push()
    (former,) = phone.all()
    phone.make(BackupSecret(BY_PASSPHRASE, "correct horse"))
    before = [each.id for each in phone.all()]
    phone.push()
    (new,) = phone.all()
    assert (before, new.id != former.id) == ([former.id], True)
    assert phone.fetch(new).read_bytes() == phone.file


class Broken(BlobHttp):
    """A connection that breaks at the n-th request, before or after the server has done what it says."""

    def __init__(self, whole: BlobHttp, at: int, *, after: bool) -> None:
        self.__dict__.update(whole.__dict__)
        self._left, self._after = at, after

    def _asked(self, *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KeyboardInterrupt
        asked = super()._asked(*arguments, **named)
        if self._left == 0:
            with asked:
                raise KeyboardInterrupt
        return asked


@pytest.mark.parametrize("after", [False, True])
def test_after_a_crash_at_any_step_the_next_try_ends_with_one_whole_backup(phone: Phone, *, after: bool) -> None:
    whole = phone.copies._http  # pyright: ignore[reportPrivateUsage]
    phone.make()
    phone.push()
    crashes = 0
    for at in range(1, 40):
        # A new passphrase: a new backup, and the former one is to go.
        phone.make(BackupSecret(BY_PASSPHRASE, f"horse {at}"))
        try:
            phone.push(ServerCopies(Broken(whole, at, after=after), LIMITS))
        except KeyboardInterrupt:
            crashes += 1
            assert any(each.size for each in phone.all())
            phone.push()
        (left,) = phone.all()
        assert phone.fetch(left).read_bytes() == phone.file
        if crashes < at:
            break
    assert crashes >= 4


def test_a_server_that_is_away_is_said_and_what_is_owed_is_remembered(phone: Phone) -> None:
    phone.make()
    away = ServerCopies(BlobHttp(["http://127.0.0.1:9"], "Bearer x", None, LIMITS), LIMITS)
    with pytest.raises(BackupError, match="the backup could not be brought to the server"):
        phone.push(away)
    for asking in (away.all(), away.named("")):
        with pytest.raises(BackupError, match="could not be listed"):
            asyncio.run(asking)
    state = state_in(phone.store)
    assert state is not None
    assert (state.owes, replace(state, every_ms=60_000).due) == (True, state.at)
    phone.push()
    state = state_in(phone.store)
    assert state is not None
    assert (state.owes, replace(state, every_ms=60_000).due) == (False, state.at + 60_000)


def test_an_upload_that_has_expired_begins_again(phone: Phone, town: Town) -> None:
    phone.make()
    state = state_in(phone.store)
    assert state is not None
    http = phone.copies._http  # pyright: ignore[reportPrivateUsage]

    class Stops(BlobHttp):
        def append(self, blob: str, offset: int, piece: bytes | bytearray, checksum: str = "") -> int:
            super().append(blob, offset, piece[:10])
            raise Unreachable("gone")

    stops = Stops.__new__(Stops)
    stops.__dict__.update(http.__dict__)
    with pytest.raises(BackupError):
        phone.push(ServerCopies(stops, LIMITS))
    state = state_in(phone.store)
    assert state is not None
    assert state.server is not None
    assert state.server.pending is not None
    http.remove(state.server.pending.blob)
    phone.push()
    (left,) = phone.all()
    assert phone.fetch(left).read_bytes() == phone.file


def test_nobody_else_lists_or_fetches_a_backup(phone: Phone, town: Town) -> None:
    phone.make()
    phone.push()
    (kept,) = phone.all()
    eve = copies_of(town, town.register(f"eve-{kept.id[:6]}"))
    assert asyncio.run(eve.all()) == []
    with pytest.raises(BackupError, match="could not be fetched"):
        asyncio.run(eve.fetch(kept, phone.folder / "stolen"))
    asyncio.run(eve.forget(kept))
    assert phone.all() == [kept]


def test_what_is_forgotten_is_gone_and_the_next_backup_is_whole(phone: Phone) -> None:
    phone.make()
    phone.push()
    (kept,) = phone.all()
    assert asyncio.run(phone.copies.named(kept.id[:6])) == kept
    for name, why in (("abc", "4 digits"), ("feed" * 8, "no backup on the server")):
        with pytest.raises(Misused, match=why):
            asyncio.run(phone.copies.named(name))
    asyncio.run(phone.copies.forget(kept))
    assert phone.all() == []
    asyncio.run(phone.save()(without(kept)))
    phone.make()
    phone.push()
    (again,) = phone.all()
    assert (again.id != kept.id, phone.fetch(again).read_bytes()) == (True, phone.file)


# --- a server that lies ---------------------------------------------------------------------------


def two_parts(phone: Phone) -> ServerBackup:
    phone.make()
    phone.push()
    phone.store.put_message(a_message(9))
    phone.store.commit()
    phone.make()
    phone.push()
    (kept,) = phone.all()
    return kept


def test_an_older_backup_is_refused_where_a_device_knows_the_newer_one(phone: Phone) -> None:
    kept = two_parts(phone)
    older = open_backup(phone.fetch(kept._replace(parts=kept.parts[:1])), CODE)
    with pytest.raises(BackupOlder) as refused:
        restore(phone.profile, older, AT + 9_000)
    assert (refused.value.at, refused.value.newest) == (AT + 1_000, AT + 2_000)
    newest = open_backup(phone.fetch(kept), CODE)
    assert restore(phone.profile, newest, AT + 9_000).messages == 0
    assert restore(phone.profile, older, AT + 9_000, may_be_older=True).messages == 0


def test_parts_that_are_swapped_or_repeated_do_not_open(phone: Phone) -> None:
    kept = two_parts(phone)
    first, second = kept.parts
    for parts in ((second, first), (first, first), (first, second, second), (second,)):
        file = phone.fetch(kept._replace(parts=parts))
        with pytest.raises(BackupDamaged):
            open_backup(file, CODE)


def test_without_its_beginning_a_backup_is_not_fetched(phone: Phone) -> None:
    kept = two_parts(phone)
    asyncio.run(phone.copies.forget(kept._replace(blobs=kept.blobs[:1])))
    (rest,) = phone.all()
    assert (rest.size, rest.id) == (0, kept.id)
    with pytest.raises(BackupDamaged, match="beginning"):
        phone.fetch(rest)
    with pytest.raises(BackupError, match="no backup of this account"):
        asyncio.run(phone.copies.named(""))


def test_parts_are_put_together_by_their_heads() -> None:
    def part(n: int, backup: bytes, start: int, size: int) -> Any:
        blob = KeptBackup(f"blob{n}", HEAD.size + size, 10 - n)
        return part_in(blob, head_of_part(backup, start) + b"...")

    one, two = b"1" * 16, b"2" * 16
    parts = [part(1, one, 0, 5), part(2, two, 0, 7), part(3, one, 5, 3), part(4, one, 20, 9), part(5, two, 7, 0)]
    backups = together(parts)
    assert [(each.id[:2], each.at, each.size, each.blobs) for each in backups] == [
        ("32", 8, 7, ("blob2", "blob5")),
        ("31", 9, 8, ("blob1", "blob3", "blob4")),
    ]
    assert part_in(KeptBackup("x", 40, 1), b"something else".ljust(40)) is None
    assert part_in(KeptBackup("x", 40, 1), b"short") is None


# --- a running client -----------------------------------------------------------------------------


def test_a_running_client_brings_its_backups_to_the_server_by_itself(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        servers = [f"http://127.0.0.1:{town.port}"]
        async with Client(tmp_path / "ada", servers, handle="running-ada") as ada, asyncio.timeout(60):
            await (await ada.send("running-ada", "a note")).sent()
            made = await ada.backups.make(secret=CODE, to_server=True)
            (kept,) = await ada.backups.on_server()
            assert (kept.size, made.file) == (made.size, server_file(tmp_path / "ada"))
            await ada.backups.schedule(EVERY_MS_MIN)
            assert ada.backups.state is not None
            told: asyncio.Future[BackedUp] = asyncio.get_running_loop().create_future()
            ada.on(BackedUp)(told.set_result)
            with ada._open_driver().working():  # pyright: ignore[reportPrivateUsage]
                put_state(ada._store, replace(ada.backups.state, at=1))  # pyright: ignore[reportPrivateUsage]
            await ada.backups.schedule(EVERY_MS_MIN)
            assert (await told).messages == 1
            while len((await ada.backups.on_server())[0].parts) < 2:
                pass
            gone = await ada.backups.forget(kept.id)
            assert (gone.id, await ada.backups.on_server()) == (kept.id, [])

    asyncio.run(story())
