"""The own devices know of each other's newest backups, and nobody else's word counts."""

from __future__ import annotations

import msgspec
import pytest

from nightmail.client.backup import newest
from nightmail.client.backup.newest import KnownBackup, known_in
from nightmail.client.own_devices.controls import BACKUPS_MAX, backups_of
from nightmail.e2ee.errors import BadEncoding
from nightmail.model.ids import account_id, device_id
from tests.client.own_devices.test_contact_sync import two_devices
from tests.client.town import Device

ONE, OTHER = b"1" * 16, b"2" * 16


def number(device: Device) -> int:
    return device.machine.parts.context.identity.device


def made(device: Device, lineage: bytes, at: int) -> None:
    newest.note_made(device.store, lineage, number(device), at)
    device.machine.backup_made(device.town.now)
    device.look()


def test_a_backup_of_one_device_is_known_to_the_other_and_told_once() -> None:
    town, phone, laptop = two_devices()
    made(phone, ONE, 1_000)
    town.settle()
    assert known_in(laptop.store) == [KnownBackup(ONE, 1_000, number(phone))]
    assert [newest.newer_than(laptop.store, ONE, at) for at in (999, 1_000)] == [1_000, None]
    assert all(each.told for each in known_in(phone.store))


def test_what_was_made_while_nothing_ran_is_told_with_the_next_connection() -> None:
    town, phone, laptop = two_devices()
    phone.cut()
    newest.note_made(phone.store, ONE, number(phone), 7)
    phone.connect()
    town.settle()
    assert newest.newer_than(laptop.store, ONE, 6) == 7


def test_a_new_device_is_told_what_is_known() -> None:
    town, phone, laptop = two_devices()
    made(laptop, ONE, 5)
    town.settle()
    tablet = town.pair(phone)
    tablet.connect()
    town.settle()
    assert newest.newer_than(tablet.store, ONE, 4) == 5


def test_a_backup_under_a_new_code_makes_those_of_its_device_old_and_no_others() -> None:
    town, phone, laptop = two_devices()
    made(phone, ONE, 10)
    made(laptop, OTHER, 11)
    made(phone, b"3" * 16, 20)
    town.settle()
    for device in (phone, laptop):
        assert [newest.newer_than(device.store, lineage, 15) for lineage in (ONE, OTHER, b"3" * 16)] == [20, None, 20]


def test_what_another_account_is_said_to_have_made_is_not_taken_and_the_list_is_bounded() -> None:
    _town, phone, _laptop = two_devices()
    assert phone.machine.parts.own is not None
    take = phone.machine.parts.own.backup_sync.take
    bobs = device_id(account_id("bob"), 1)
    take(bobs, msgspec.msgpack.encode([(ONE, 5, bobs)]))
    assert known_in(phone.store) == []
    for n in range(2 * BACKUPS_MAX):
        newest.note(phone.store, KnownBackup(n.to_bytes(16, "big"), n + 1, number(phone) + n))
    assert [each.at for each in known_in(phone.store)] == list(range(BACKUPS_MAX + 1, 2 * BACKUPS_MAX + 1))


@pytest.mark.parametrize(
    "said", [b"\xff", [[b"short", 1, 1]], [[ONE, 0, 1]], [[ONE, 1, -1]], [[ONE, 1]], [[ONE, 1, 1]] * (BACKUPS_MAX + 1)]
)
def test_what_is_malformed_is_refused(said: object) -> None:
    with pytest.raises(BadEncoding):
        backups_of(said if isinstance(said, bytes) else msgspec.msgpack.encode(said))
