"""What is in a backup, what an increment adds, and what is left after a crash at any point."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightmail.client.backup.looking import BackupInfo
from nightmail.client.backup.making import SEGMENTS_MAX, BackupMade, BackupRun, state_with
from nightmail.client.backup.schedule import state_in
from nightmail.client.errors import BackupError, BackupLocked, Misused
from nightmail.client.messages import Tick
from nightmail.client.own_devices.controls import PastMessage
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact, MessageNumber, ReadMark
from nightmail.client.store.sqlite import SqliteStore
from nightmail.e2ee.streams.backup import BY_CODE, BY_PASSPHRASE, BackupSecret
from nightmail.model.words import Lane

from .saved import (
    ADA,
    AT,
    BOB,
    CODE,
    ME,
    a_message,
    back_up,
    fill,
    info_of,
    opened,
    saved_contacts,
    saved_messages,
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path, bytes(32))
    fill(made)
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ada.backup"


def test_the_first_backup_holds_everything_and_says_whose_it_is_and_from_when(store: Store, file: Path) -> None:
    made = back_up(store, file)
    size = file.stat().st_size
    assert made == BackupMade(file, AT, 3, 3, size, 1, is_whole=True)
    assert info_of(file) == BackupInfo(file, "ada", ADA, AT, 3, size, 1, "recovery code")
    assert saved_messages(file) == {m.id: PastMessage.of(m) for m in map(a_message, range(3))}
    assert saved_contacts(file) == {BOB: Contact(BOB, "bob", "Robert")}


def test_only_its_owner_can_read_the_file(store: Store, file: Path) -> None:
    back_up(store, file)
    assert file.stat().st_mode & 0o777 == 0o600
    data = file.read_bytes()
    assert all(word not in data for word in (b"message", b"Robert", b"bob", b"ada", ME.device.to_bytes(8, "big")))


def test_an_increment_holds_what_changed_and_nothing_else(store: Store, file: Path) -> None:
    back_up(store, file)
    store.put_message(replace(a_message(1), state=Tick.READ))
    store.put_message(a_message(7))
    store.drop_contact(BOB)
    store.commit()
    made = back_up(store, file, AT + 1)
    assert (made.messages, made.saved, made.segments, made.is_whole) == (4, 2, 2, False)
    newest = next(part for part in opened(file).parts() if part.messages)
    assert [past.id for past in newest.messages] == [a_message(1).id, a_message(7).id]
    assert {ident: past.state for ident, past in saved_messages(file).items()} == {
        a_message(0).id: Tick.SENT, a_message(1).id: Tick.READ, a_message(2).id: Tick.SENT, a_message(7).id: Tick.SENT,
    }  # fmt: skip
    assert saved_contacts(file) == {BOB: None}
    assert info_of(file).at == AT + 1


def test_messages_that_disappear_and_those_that_wait_to_be_sent_are_in_no_backup(store: Store, file: Path) -> None:
    for n, increment in ((10, False), (20, True)):
        store.put_message(a_message(n, life_ms=30_000))
        store.put_message(a_message(n + 1, at=0, state=Tick.PENDING))
        store.put_message(a_message(n + 2, at=0, state=Tick.FAILED))
        store.commit()
        made = back_up(store, file)
        assert made.is_whole is not increment
        assert a_message(n + 2).id in saved_messages(file)
        assert not {a_message(n).id, a_message(n + 1).id} & saved_messages(file).keys()
    assert made.messages == 5


def test_what_is_unread_is_saved_as_unread_until_it_is_read(store: Store, file: Path) -> None:
    number = MessageNumber(ME.device, ADA, Lane.HIGH, 5, a_message(1).id, ReadMark.UNREAD)
    store.put_numbered(number)
    store.commit()
    back_up(store, file)
    assert saved_messages(file)[number.id].unread == (Lane.HIGH, 5)
    store.put_numbered(replace(number, mark=ReadMark.NONE))
    store.commit()
    back_up(store, file)
    assert saved_messages(file)[number.id].unread is None


def test_what_changes_while_a_backup_is_made_is_in_the_next_one(store: Store, file: Path) -> None:
    back_up(store, file)
    store.put_message(a_message(5))
    store.commit()
    state = state_in(store)
    assert state is not None
    run = BackupRun(store, None, state, file, AT)
    run.begin()
    store.put_message(replace(a_message(5), state=Tick.READ))
    run.prepare()
    steps = run.steps()
    next(steps)
    store.put_message(a_message(6))
    list(steps)
    run.finish()
    run.save()
    store.commit()
    back_up(store, file)
    assert saved_messages(file)[a_message(5).id].state is Tick.READ
    assert a_message(6).id in saved_messages(file)


@pytest.mark.parametrize("until", ["begin", "prepare", "steps", "finish"])
def test_after_a_crash_the_former_file_or_the_new_one_is_whole_and_the_next_backup_lacks_nothing(
    store: Store, file: Path, until: str
) -> None:
    back_up(store, file)
    before = file.read_bytes()
    store.put_message(a_message(5))
    store.commit()
    state = state_in(store)
    assert state is not None
    run = BackupRun(store, None, state, file, AT + 1)
    for step in ("begin", "prepare", "steps", "finish"):
        list(run.steps()) if step == "steps" else getattr(run, step)()
        if step == until:
            break
    store.rollback()
    beside = file.with_name(f".{file.name}.new")
    half = beside.read_bytes() if beside.exists() else None
    run.abandon()
    if half is not None:
        beside.write_bytes(half)  # as a crash leaves it
    if until == "finish":
        assert a_message(5).id in saved_messages(file)
    else:
        assert file.read_bytes() == before
    made = back_up(store, file, AT + 2)
    assert made.is_whole is (until == "finish")
    assert a_message(5).id in saved_messages(file)
    assert list(file.parent.glob(".*.new")) == []


def test_a_backup_that_fails_leaves_the_former_file_and_forgets_no_change(store: Store, file: Path) -> None:
    back_up(store, file)
    before = file.read_bytes()
    store.put_message(a_message(5))
    store.commit()
    with pytest.raises(BackupError, match="cannot be written"):
        back_up(store, file.parent / "missing" / "ada.backup")
    assert file.read_bytes() == before
    assert back_up(store, file).saved == 1
    assert a_message(5).id in saved_messages(file)


def test_a_file_that_is_not_the_last_one_is_written_as_a_whole(store: Store, file: Path) -> None:
    back_up(store, file)
    older = file.read_bytes()
    store.put_message(a_message(5))
    store.commit()
    back_up(store, file)
    for there in (older, older[:-1], b"", None):
        file.unlink()
        if there is not None:
            file.write_bytes(there)
        made = back_up(store, file)
        assert (made.is_whole, made.segments) == (True, 1)
        assert a_message(5).id in saved_messages(file)


def test_another_file_gets_everything_and_the_same_code_opens_it(store: Store, file: Path, tmp_path: Path) -> None:
    back_up(store, file)
    other = tmp_path / "other.backup"
    assert back_up(store, other).is_whole
    assert len(saved_messages(other)) == 3


def test_after_many_increments_the_file_is_written_again_as_a_whole(store: Store, file: Path) -> None:
    for n in range(200):
        store.put_message(a_message(n, "x" * 900))
    store.commit()
    made = [back_up(store, file, AT + n) for n in range(SEGMENTS_MAX + 2)]
    assert [each.segments for each in made] == [*range(1, SEGMENTS_MAX + 1), 1, 2]
    assert [each.is_whole for each in made] == [each.segments == 1 for each in made]


def test_what_was_added_is_never_longer_than_the_whole(store: Store, file: Path) -> None:
    back_up(store, file)
    for n in range(10, 30):
        store.put_message(a_message(n, "x" * 900))
        store.commit()
        back_up(store, file)
        state = state_in(store)
        assert state is not None
        assert state.size <= 2 * state.whole_size + 2_048
    assert len(saved_messages(file)) == 23


def test_a_new_secret_opens_the_new_file_and_the_old_one_does_not(store: Store, file: Path) -> None:
    back_up(store, file)
    former, horse = state_in(store), BackupSecret(BY_PASSPHRASE, "correct horse")
    run = BackupRun(store, None, state_with(former, horse), file, AT)
    run.begin()
    run.prepare()
    list(run.steps())
    run.finish()
    assert run.save().is_whole
    store.commit()
    assert len(list(opened(file, horse).parts())) > 0
    with pytest.raises(BackupLocked):
        opened(file)
    assert back_up(store, file).segments == 2


def test_a_first_backup_needs_something_that_opens_it() -> None:
    with pytest.raises(Misused):
        state_with(None, None)
    with pytest.raises(Misused):
        state_with(None, BackupSecret(BY_PASSPHRASE, ""))
    with pytest.raises(BackupLocked):
        state_with(None, BackupSecret(BY_CODE, "not twelve words"))


def test_the_secret_is_nowhere_in_the_profile(tmp_path: Path, file: Path) -> None:
    store = MemoryStore()
    fill(store)
    back_up(store, file)
    assert CODE.text.encode() not in (store.errand("backup") or b"")
    assert "key" not in repr(state_in(store))


def test_a_file_that_cannot_be_written_says_so(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(BackupError, match="cannot be written"):
        back_up(store, folder)
    assert os.listdir(tmp_path / "folder") == []
