"""A pending device that did not come is revoked at the server, whatever fails meanwhile."""

from __future__ import annotations

import pytest

from nightmail.client.events import DeviceNotLinked, Provisioned
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.device_linking import ERRAND as PENDING
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.own_devices.revocations import ERRAND
from nightmail.e2ee.state import decode_keys
from nightmail.model.answers import Done, Said
from nightmail.model.ids import SERVER
from nightmail.model.records import Unlinked
from nightmail.model.refusals import Unavailable, UnknownAccount, UnknownDevice
from nightmail.wire.items import Answered
from tests.client.sealed_town import a_town, pass_time, said_by
from tests.client.town import Device, Town


def linked(town: Town, device: Device) -> list[int]:
    """The devices that the server has of an account, listed or not."""
    row = town.loop.state.accounts[device.me.account]
    assert row is not None
    return list(row.devices)


def a_device_too_late(town: Town, alice: Device) -> Device:
    """The primary device has just let it go, and has not said so yet."""
    laptop = town.pair(alice)
    town.devices.remove(laptop)
    town.settle()
    while not alice.told(DeviceNotLinked):
        town.wait(60_000)
        if alice.store.errands(PENDING):
            town.settle()
    assert linked(town, alice) == [alice.me.device, laptop.me.device]
    return laptop


def test_a_pending_device_that_did_not_come_is_revoked_at_the_server() -> None:
    town, (alice,) = a_town("alice")
    laptop = a_device_too_late(town, alice)
    town.settle()
    assert (said_by(alice, Unlinked), linked(town, alice)) == ([Unlinked(laptop.me.device)], [alice.me.device])
    pass_time(town, 60_000, 600_000)
    assert (len(said_by(alice, Unlinked)), alice.store.errands(ERRAND)) == (1, [])


@pytest.mark.parametrize("crashed", [False, True])
def test_a_dismissed_device_is_revoked_even_if_the_primary_device_crashes_before_it_says_so(crashed: bool) -> None:
    town, (alice,) = a_town("alice")
    a_device_too_late(town, alice)
    if crashed:
        alice.crash()
    else:
        alice.cut()
    alice.connect()
    town.settle()
    assert (linked(town, alice), alice.store.errands(ERRAND)) == ([alice.me.device], [])
    alice.cut()
    alice.connect()
    town.settle()
    assert said_by(alice, Unlinked) == []


def test_a_dismissed_device_is_revoked_later_if_the_server_cannot_now() -> None:
    town, (alice,) = a_town("alice")
    laptop = a_device_too_late(town, alice)
    town.meddle = lambda _, item: Answered(item.ref, Unavailable()) if isinstance(item, Answered) else item
    alice.exchange()
    assert len(alice.store.errands(ERRAND)) == 1
    town.meddle = lambda _, item: item
    pass_time(town, 500, 1_000)
    assert said_by(alice, Unlinked) == [Unlinked(laptop.me.device)] * 2
    assert alice.store.errands(ERRAND) == []


@pytest.mark.parametrize("said", [Done(), UnknownDevice(1), UnknownAccount(1)])
def test_a_device_that_is_gone_already_need_not_be_revoked_again(said: Said) -> None:
    town, (alice,) = a_town("alice")
    laptop = a_device_too_late(town, alice)
    town.say(SERVER, Unlinked(laptop.me.device))
    town.meddle = lambda _, item: Answered(item.ref, said) if isinstance(item, Answered) else item
    town.settle()
    pass_time(town, 60_000, 600_000)
    assert said_by(alice, Unlinked) == [Unlinked(laptop.me.device)]
    assert alice.store.errands(ERRAND) == []


def test_a_pending_device_that_the_person_wants_after_all_is_not_revoked() -> None:
    town, (alice,) = a_town("alice")
    laptop = a_device_too_late(town, alice)
    alice.cut()
    row = laptop.store.own_keys()
    assert row is not None
    public = decode_keys(row.state).identity.public.encode()
    alice.machine.link(PendingLink(laptop.me.device, laptop.me.registration, public, b"s" * 16), town.now)
    alice.connect()
    laptop.connect()
    town.devices.append(laptop)
    town.settle()
    assert said_by(alice, Unlinked) == []
    assert (laptop.told(Provisioned), linked(town, alice)) == (
        [Provisioned()], [alice.me.device, laptop.me.device]
    )  # fmt: skip


def test_a_pending_device_that_was_listed_and_never_provisioned_is_taken_off_the_list() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    town.meddle = lambda _, item: None if isinstance(item, Answered) and item.said == Done() else item
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    for device in (alice, laptop):
        device.cut()
    town.devices.remove(laptop)
    town.meddle = lambda _, item: item
    town.wait(ClientLimits().link_ms)
    alice.connect()
    town.settle()
    assert (len(alice.told(DeviceNotLinked)), linked(town, alice)) == (1, [alice.me.device])
    signed = alice.machine.sealer.believed.of(alice.me.account)
    assert signed is not None
    assert [address.device for address in signed.devices] == [alice.me.device]
    message = bob.says(alice, "hello")
    town.settle()
    assert bob.state(message) == "delivered"
