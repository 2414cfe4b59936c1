"""A new device is linked, whatever is lost on the way."""

from __future__ import annotations

import pytest

from nightmail.client.events import DeviceLinked, DeviceNotLinked, Provisioned
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.device_linking import ERRAND
from nightmail.model.answers import Done
from nightmail.model.ids import SERVER
from nightmail.model.records import Claimed, Listed, Unlinked
from nightmail.wire.items import Answered
from tests.client.sealed_town import a_town, said_by, stop_meddling
from tests.client.town import Device, Town


def test_linking_goes_on_although_the_answer_to_the_list_was_lost() -> None:
    town, (alice,) = a_town("alice")
    town.meddle = lambda device, item: None if isinstance(item, Answered) and item.said == Done() else item
    laptop = town.pair(alice)
    laptop.connect()
    town.settle(alice, laptop)
    assert alice.told(DeviceLinked) == []
    stop_meddling(town, alice)
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
    assert laptop.told(Provisioned) == [Provisioned()]


def test_the_app_is_told_of_a_linked_device_also_if_provision_was_written_before_a_restart() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    laptop.connect()
    while not alice.store.outgoing():
        laptop.exchange()
        alice.exchange()
        town.wait(100)
    assert (alice.store.errands(ERRAND), alice.told(DeviceLinked)) == ([], [])
    alice.crash()
    alice.connect()
    town.settle()
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
    stop_meddling(town, alice)
    assert len(alice.told(DeviceLinked)) == 1


# --- devices that do not come ---------------------------------------------------------------------


def a_pending_device_with_keys(town: Town, alice: Device) -> Device:
    """It was agreed to, and its keys are here; but it is not listed yet."""
    laptop = town.pair(alice)
    laptop.connect()
    while alice.machine.sealer.sessions.find(laptop.me.device) is None:
        laptop.exchange()
        alice.carry_down()
        if alice.machine.sealer.sessions.find(laptop.me.device) is None:
            alice.carry_up()
            town.wait(100)
    return laptop


@pytest.mark.parametrize("crashed", [False, True])
def test_a_pending_device_that_is_revoked_before_it_is_listed_is_dismissed_and_nobody_else_waits(crashed: bool) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = a_pending_device_with_keys(town, alice)
    if crashed:
        alice.crash()
    else:
        alice.cut()
    laptop.cut()
    town.devices.remove(laptop)
    town.say(SERVER, Unlinked(laptop.me.device))
    alice.connect()
    town.settle()
    assert len(said_by(alice, Listed)) == 1
    tablet = town.pair(alice)
    tablet.connect()
    for _ in range(20):
        town.settle()
        town.wait(1_000)
    assert [event.device for event in alice.told(DeviceNotLinked)] == [laptop.me.device]
    assert alice.told(DeviceLinked) == [DeviceLinked(tablet.me.device)]
    assert (alice.store.errands(ERRAND), alice.store.peer(laptop.me.device)) == ([], None)
    message = bob.says(alice, "hello")
    town.settle()
    assert (bob.state(message), tablet.heard()) == ("delivered", ["hello"])


def test_a_pending_device_that_never_comes_is_asked_for_with_backoff_and_then_dismissed() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.devices.remove(laptop)
    for _ in range(2 * ClientLimits().link_ms // 1_000):
        town.wait(1_000)
        while alice.exchange():
            pass
    assert 20 < len(said_by(alice, Claimed)) < 100
    assert alice.told(DeviceNotLinked) == [DeviceNotLinked(laptop.me.device, "it did not come in time")]
    assert (alice.store.errands(ERRAND), alice.store.claims()) == ([], {})


def test_a_pending_device_that_is_revoked_before_it_came_is_not_asked_for_again() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.devices.remove(laptop)
    town.say(SERVER, Unlinked(laptop.me.device))
    for _ in range(30):
        town.wait(1_000)
        town.settle()
    assert len(said_by(alice, Claimed)) == 1
    assert [event.device for event in alice.told(DeviceNotLinked)] == [laptop.me.device]


def test_a_pending_device_that_the_person_revokes_is_not_waited_for() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    alice.machine.dismiss(laptop.me.device, town.now)
    alice.look()
    laptop.connect()
    town.settle()
    assert alice.told(DeviceNotLinked) == [DeviceNotLinked(laptop.me.device, "it was revoked")]
    assert (alice.told(DeviceLinked), alice.store.errands(ERRAND)) == ([], [])
