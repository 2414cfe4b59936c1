"""Contacts, names, blocks and handles: the same on all own devices, and nobody else's business."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from nightmail.client.events import ContactsChanged, Provisioned
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.contact_sync import ERRAND, NEWCOMER
from nightmail.client.own_devices.controls import ContactChange, ContactsPart, contacts_of
from nightmail.client.store.rows import Contact
from nightmail.e2ee.errors import BadEncoding
from nightmail.model.ids import account_id
from nightmail.model.records import Sent
from nightmail.model.words import Lane
from tests.client.sealed_town import a_town, keep_back, revoke, said_by, stop_meddling
from tests.client.town import Device, Town

BOB, CAROL = account_id("bob"), account_id("carol")
UNCLE = Contact(BOB, "bob", "Uncle Bob")


def two_devices() -> tuple[Town, Device, Device]:
    town, (phone,) = a_town("alice")
    laptop = town.pair(phone)
    laptop.connect()
    town.settle()
    return town, phone, laptop


def put(device: Device, row: Contact) -> None:
    device.machine.put_contact(row, device.town.now)
    device.look()


def drop(device: Device, account: int) -> None:
    device.machine.drop_contact(account, device.town.now)
    device.look()


def test_a_name_given_on_one_device_is_shown_on_the_other_and_the_server_does_not_see_it() -> None:
    town, phone, laptop = two_devices()
    put(laptop, UNCLE)
    town.settle()
    assert phone.store.contacts() == [UNCLE]
    assert phone.told(ContactsChanged) == [ContactsChanged((BOB,))]
    envelopes = [e for sent in said_by(laptop, Sent) for e in (*sent.envelopes, *sent.own_envelopes)]
    assert envelopes
    assert all(b"Uncle" not in envelope.ciphertext for envelope in envelopes)


def test_a_block_and_a_deleted_contact_are_shared_too() -> None:
    town, phone, laptop = two_devices()
    put(phone, UNCLE)
    put(phone, Contact(CAROL, "carol", blocked=True))
    town.settle()
    drop(laptop, BOB)
    town.settle()
    assert phone.store.contacts() == laptop.store.contacts() == [Contact(CAROL, "carol", blocked=True)]


@pytest.mark.parametrize("phone_first", [True, False])
def test_of_two_changes_at_once_the_newer_wins_on_both_in_whatever_order_they_come(phone_first: bool) -> None:
    town, phone, laptop = two_devices()
    phone.cut()
    laptop.cut()
    first, second = (phone, laptop) if phone_first else (laptop, phone)
    put(first, replace(UNCLE, name="first"))
    town.now += 1
    put(second, replace(UNCLE, name="second"))
    for device in (second, first):
        device.connect()
        town.settle()
    assert phone.store.contacts() == laptop.store.contacts() == [replace(UNCLE, name="second")]


def test_two_changes_in_the_same_millisecond_end_alike_on_both() -> None:
    town, phone, laptop = two_devices()
    put(phone, replace(UNCLE, name="phone"))
    put(laptop, replace(UNCLE, name="laptop"))
    town.settle()
    assert phone.me.device < laptop.me.device
    assert phone.store.contacts() == laptop.store.contacts() == [replace(UNCLE, name="laptop")]


def test_a_change_is_newer_than_what_its_device_knew_although_its_clock_is_behind() -> None:
    town, phone, laptop = two_devices()
    laptop.machine.put_contact(UNCLE, town.now + 1_000_000)  # the laptop's clock is ahead
    laptop.look()
    town.settle()
    drop(phone, BOB)
    town.settle()
    assert phone.store.contacts() == laptop.store.contacts() == []


def test_a_new_device_gets_every_contact_and_handle() -> None:
    town, (phone,) = a_town("alice")
    people = [Contact(account_id(f"person {n}"), f"person {n}", "x" * 250) for n in range(600)]
    for person in people:
        phone.machine.put_contact(person, town.now)
    phone.machine.learn_handle(CAROL, "carol", town.now)
    phone.look()
    laptop = town.pair(phone)
    laptop.connect()
    town.settle()
    assert laptop.store.contacts() == phone.store.contacts() == sorted(people, key=lambda row: row.account)
    assert laptop.store.conversation(CAROL).handle == "carol"


def test_a_change_on_another_device_shortly_before_a_device_is_linked_reaches_the_new_one() -> None:
    """The change was sealed for the devices of the old list, and the primary gets it after it told its contacts."""
    town, phone, laptop = two_devices()
    keep_back(town, phone, Lane.HIGH)
    put(laptop, UNCLE)
    laptop.machine.learn_handle(CAROL, "carol", town.now)
    laptop.look()
    town.settle()
    tablet = town.pair(phone)
    tablet.connect()
    town.settle()
    assert (tablet.told(Provisioned), tablet.store.contacts()) == ([Provisioned()], [])
    stop_meddling(town, phone)
    assert phone.store.contacts() == tablet.store.contacts() == [UNCLE]
    assert tablet.store.conversation(CAROL).handle == "carol"


def test_a_device_that_was_removed_again_is_told_of_no_change() -> None:
    town, phone, laptop = two_devices()
    tablet = town.pair(phone)
    tablet.connect()
    town.settle()
    revoke(town, phone, tablet)
    town.settle()
    before = len(said_by(phone, Sent))
    put(laptop, UNCLE)
    town.settle()
    assert phone.store.contacts() == [UNCLE]
    assert said_by(phone, Sent)[before:] == []


def test_a_change_on_a_device_that_is_being_linked_reaches_the_others() -> None:
    town, (phone,) = a_town("alice")
    laptop = town.pair(phone)
    put(laptop, UNCLE)
    laptop.connect()
    town.settle()
    assert laptop.told(Provisioned)
    assert phone.store.contacts() == laptop.store.contacts() == [UNCLE]


def test_a_contact_from_before_contacts_were_shared_reaches_a_new_device_and_can_be_changed_there() -> None:
    town, (phone,) = a_town("alice")
    phone.store.put_contact(UNCLE)
    laptop = town.pair(phone)
    laptop.connect()
    town.settle()
    assert laptop.store.contacts() == [UNCLE]
    drop(laptop, BOB)
    town.settle()
    assert phone.store.contacts() == []


def test_a_handle_that_was_typed_on_one_device_is_known_on_the_other() -> None:
    town, phone, laptop = two_devices()
    phone.machine.learn_handle(BOB, "bob", town.now)
    phone.look()
    town.settle()
    assert laptop.store.conversation(BOB).handle == "bob"
    assert laptop.told(ContactsChanged) == [ContactsChanged((BOB,))]


def test_other_devices_bring_no_more_contacts_than_the_limit() -> None:
    town, (phone,) = a_town("alice")
    for n in range(5):
        phone.machine.put_contact(Contact(100 + n, f"person {n}"), town.now)
    phone.look()
    phone.limits = ClientLimits(contacts=3)
    laptop = town.pair(phone)
    laptop.connect()
    town.settle()
    assert len(laptop.store.contacts()) == 3


def test_a_deleted_contact_is_remembered_only_as_long_as_an_older_change_can_come() -> None:
    town, phone, laptop = two_devices()
    put(phone, UNCLE)
    drop(phone, BOB)
    put(phone, Contact(CAROL, "carol"))
    town.settle()
    assert len(laptop.store.errands(ERRAND)) == 2
    for _ in range(33):
        town.wait(86_400_000)
        town.settle()
    assert phone.store.errands(ERRAND) == laptop.store.errands(ERRAND) == [f"{ERRAND}{CAROL:016x}"]


def test_changes_are_passed_on_to_a_linked_device_only_as_long_as_it_can_have_missed_them() -> None:
    town, phone, laptop = two_devices()
    assert phone.store.errands(NEWCOMER) == [f"{NEWCOMER}{laptop.me.device:016x}"]
    for _ in range(33):
        town.wait(86_400_000)
        town.settle()
    assert phone.store.errands(NEWCOMER) == []


CHANGE = ContactChange(BOB, "bob", "Bob", False, False, 5, 6)


@pytest.mark.parametrize(
    "part",
    [
        ContactsPart((replace(CHANGE, account=-1),)),
        ContactsPart((replace(CHANGE, at=2**63),)),
        ContactsPart((replace(CHANGE, by=0),)),
        ContactsPart((replace(CHANGE, name="x" * 257),)),
        ContactsPart((), {0: "nobody"}),
        ContactsPart((), {BOB: "x" * 257}),
    ],
)
def test_contacts_that_cannot_be_stored_are_refused(part: ContactsPart) -> None:
    with pytest.raises(BadEncoding):
        contacts_of(msgspec.msgpack.encode(part))
