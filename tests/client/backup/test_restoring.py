"""A device is lost, and its person comes back with a backup."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nightmail.client.backup.restoring import Restored, restore, restore_into
from nightmail.client.errors import BackupDamaged, BackupOfAnother, Misused
from nightmail.client.events import SecurityCodeChanged
from nightmail.client.messages import Tick
from nightmail.client.profile import settings
from nightmail.client.profile.profile import Profile
from nightmail.client.store.group_rows import GroupStanding
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Contact, ReadMark
from nightmail.client.store.search import terms_of
from nightmail.e2ee.content import Content
from nightmail.model.ids import account_id
from nightmail.model.words import Kind
from tests.client.groups.town import a_group, texts, writes
from tests.client.groups.town import a_town as a_group_town
from tests.client.sealed_town import a_town, agrees, pass_time, register_again
from tests.client.town import Device, Town

from .saved import AT, ME, a_message, back_up, fill, opened


def save(device: Device, file: Path) -> None:
    device.store.put_identity(device.me)
    device.look()
    back_up(device.store, file, device.town.now)
    device.look()


def come_back(town: Town, device: Device, file: Path) -> Device:
    """The person registers again, and restores the backup before the new device is online."""
    new = register_again(town, device)
    put_back(town, new, file)
    new.connect()
    return new


def put_back(town: Town, device: Device, file: Path) -> Restored:
    device.store.put_identity(device.me)
    device.store.commit()
    restored = restore_into(device.store, opened(file), town.now, chance=town.secrets)
    device.crash()  # as a new process: it reads what is durable
    return restored


def history(device: Device, peer: Device) -> list[str]:
    return [message.text for message in device.store.history(peer.me.account, 100)]


def wait_long(town: Town) -> None:
    pass_time(town, 1_000, 10_000, 10_000, 10_000)


def test_the_history_is_there_and_what_waited_arrives_once(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.says(alice, "two")
    town.settle()
    bob.read(alice)
    alice.says(bob, "three")
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    bob.cut()
    waiting = alice.says(bob, "four")
    town.settle()
    new = come_back(town, bob, file)
    wait_long(town)
    assert history(new, alice) == ["one", "two", "three", "four"]
    assert new.heard() == ["four"]
    assert [message.text for message in new.store.search(terms_of("three"), None, 5)] == ["three"]
    assert alice.state(waiting) == "delivered"
    alice.says(new, "five")
    town.settle()
    new.says(alice, "six")
    town.settle()
    assert (history(new, alice)[-2:], history(alice, new)[-1], new.heard()) == (
        ["five", "six"],
        "six",
        ["four", "five"],
    )
    assert [event.account for event in alice.told(SecurityCodeChanged)] == [bob.me.account]


def test_ticks_and_what_is_unread_are_as_they_were(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.says(alice, "read by Alice")
    town.settle()
    alice.says(bob, "read")
    town.settle()
    alice.read(bob)
    bob.read(alice)
    town.settle()
    unread = alice.says(bob, "unread")
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    new = register_again(town, bob)
    assert put_back(town, new, file) == Restored(3, 0)
    assert [(m.text, m.state) for m in new.store.history(alice.me.account, 9)] == [
        ("read by Alice", Tick.READ), ("read", Tick.READ), ("unread", Tick.SENT),
    ]  # fmt: skip
    assert [row.id for row in new.store.marked(ReadMark.UNREAD)] == [unread.id]
    new.connect()
    town.settle()
    new.read(alice)
    wait_long(town)
    assert new.store.marked(ReadMark.UNREAD) == []
    assert new.store.marked(ReadMark.READING) == []


def test_what_was_saved_and_is_sealed_again_for_the_new_device_is_not_shown_again(tmp_path: Path) -> None:
    """The old device had it in its backup, and its acknowledgement was lost."""
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    message = alice.says(bob, "two")
    town.settle()
    bob.connect()
    while bob.store.message(message.id) is None:
        bob.carry_up(1)
        bob.carry_down(1)
    bob.up.clear()
    save(bob, file := tmp_path / "bob.backup")
    bob.up.clear()
    new = come_back(town, bob, file)
    wait_long(town)
    assert (new.heard(), history(new, alice)) == ([], ["one", "two"])
    assert alice.state(message) == "delivered"


def test_no_session_no_key_and_nothing_that_disappears_comes_back(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "stays")
    alice.machine.write(bob.me.account, Content(Kind.TEXT, "goes"), town.now, life_ms=30_000)
    alice.look()
    town.settle()
    bob.machine.write(alice.me.account, Content(Kind.TEXT, "goes, too"), town.now, life_ms=30_000)
    bob.look()
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    new = register_again(town, bob)
    put_back(town, new, file)
    assert history(new, alice) == ["stays"]
    assert (new.store.peers(), new.store.outgoing(), new.store.next_deadline(), new.store.claims()) == (
        [],
        [],
        None,
        {},
    )
    assert new.store.errands("gone ") == []
    old, fresh = bob.store.own_keys(), new.store.own_keys()
    assert fresh is None or (old is not None and fresh.state != old.state)


def test_the_timer_of_a_conversation_comes_back(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.machine.set_timer(alice.me.account, 60_000, town.now)
    bob.look()
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    new = come_back(town, bob, file)
    assert new.machine.timer(alice.me.account) == 60_000


def test_contacts_and_verified_identities_come_back_and_a_new_key_is_still_noticed(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, bob, alice, verified=True)
    bob.machine.put_contact(Contact(alice.me.account, "alice", "Ally", blocked=True), town.now)
    bob.look()
    save(bob, file := tmp_path / "bob.backup")
    bob.cut()
    other_alice = register_again(town, alice)
    other_alice.connect()
    town.settle()
    new = come_back(town, bob, file)
    trusted = new.store.trusted(alice.me.account)
    assert trusted is not None
    assert trusted.verified
    assert new.store.contacts() == [Contact(alice.me.account, "alice", "Ally", blocked=True)]
    new.says(other_alice, "for whom?")
    wait_long(town)
    assert [event.verified for event in new.told(SecurityCodeChanged)] == [True]
    assert other_alice.heard() == []


def test_the_history_of_a_group_comes_back_under_its_name_and_its_keys_do_not(tmp_path: Path) -> None:
    town, people = a_group_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    writes(ada, group, "one")
    town.settle()
    writes(bob, group, "two")
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    new = register_again(town, bob)
    put_back(town, new, file)
    row = new.store.group(group)
    assert row is not None
    assert (row.name, row.standing, row.heads, row.genesis) == ("Friends", GroupStanding.INVITED, (), b"")
    assert (new.store.sender_chain(group), new.store.receiving_chains(group), new.store.group_members(group)) == (
        None, [], None,
    )  # fmt: skip
    assert texts(new, group) == ["one", "two"]


def test_a_linked_device_gets_the_history_from_before_it_was_linked(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "before")
    town.settle()
    save(bob, file := tmp_path / "bob.backup")
    tablet = town.pair(bob)
    tablet.connect()
    town.settle()
    alice.says(bob, "after")
    town.settle()
    assert history(tablet, alice) == ["after"]
    tablet.cut()
    assert put_back(town, tablet, file).messages == 1
    tablet.connect()
    town.settle()
    assert history(tablet, alice) == ["before", "after"]
    assert tablet.heard() == ["after"]
    alice.says(bob, "later")
    town.settle()
    assert (history(tablet, alice)[-1], history(bob, alice)[-1]) == ("later", "later")


def test_what_is_here_counts_and_a_second_restore_changes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    fill(store)
    back_up(store, file := tmp_path / "ada.backup")
    here = replace(a_message(1), state=Tick.READ)
    new = MemoryStore()
    new.put_identity(ME)
    new.put_message(here)
    new.commit()
    assert restore_into(new, opened(file), AT).messages == 2
    assert restore_into(new, opened(file), AT).messages == 0
    assert new.messages_after("", 9) == [a_message(0), here, a_message(2)]


def test_a_contact_that_another_device_has_deleted_does_not_come_back(tmp_path: Path) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.machine.put_contact(Contact(alice.me.account, "alice", "Ally"), town.now)
    bob.look()
    save(bob, file := tmp_path / "bob.backup")
    tablet = town.pair(bob)
    tablet.connect()
    town.settle()
    bob.machine.drop_contact(alice.me.account, town.now)
    bob.look()
    town.settle()
    tablet.cut()
    put_back(town, tablet, file)
    assert tablet.store.contacts() == []


def test_the_backup_of_somebody_else_and_a_profile_without_a_device_are_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    fill(store)
    back_up(store, file := tmp_path / "ada.backup")
    other = MemoryStore()
    with pytest.raises(Misused, match="not registered"):
        restore_into(other, opened(file), AT)
    other.put_identity(replace(ME, handle="bob", account=account_id("bob")))
    other.commit()
    with pytest.raises(BackupOfAnother, match="'ada', and this profile belongs to 'bob'"):
        restore_into(other, opened(file), AT)
    assert (other.messages_after("", 9), other.contacts()) == ([], [])


def test_a_file_that_changes_while_it_is_restored_changes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    fill(store, 2_000)
    back_up(store, file := tmp_path / "ada.backup")
    found = opened(file)
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    new = MemoryStore()
    new.put_identity(ME)
    new.commit()
    with pytest.raises(BackupDamaged):
        restore_into(new, found, AT)
    assert (new.messages_after("", 9), new.contacts(), new.dirty) == ([], [], False)


def test_settings_come_back_unless_they_were_changed_here_or_mean_nothing(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        profile = Profile(folder)
        fill(profile.store, 1)
        profile.close()
    settings.put(old, "window", "16")
    settings.put(old, "contacts", "50")
    settings.put(new, "contacts", "60")
    profile = Profile(old)
    back_up(profile.store, file := tmp_path / "ada.backup", folder=old)
    profile.close()
    profile = Profile(new)
    seen: list[tuple[int, int]] = []
    restore(profile, opened(file), AT, lambda done, total: seen.append((done, total)))
    profile.close()
    assert settings.changed(new) == {"window": 16, "contacts": 60}
    assert seen[-1] == (1, 1)
