"""A further device is taken in, whatever is lost on the way: stories that a simulated world has told."""

from __future__ import annotations

from nightmail.client.events import DeviceLinked, Provisioned, Reachable
from nightmail.client.limits import ClientLimits
from nightmail.client.machine import BLIND
from nightmail.model.answers import Done
from nightmail.model.ids import SERVER
from nightmail.model.records import Unlinked
from nightmail.wire.items import Answered, Devices, Entries, FromServer
from tests.client.town import Device, Town


def a_town(*handles: str) -> tuple[Town, list[Device]]:
    town = Town(0, sealed=True)
    devices = [town.join(handle) for handle in handles]
    for device in devices:
        device.connect()
    town.settle()
    return town, devices


def again(town: Town, device: Device) -> None:
    """From now on nothing is kept back, over a new connection."""
    town.meddle = lambda device, item: item
    device.cut()
    device.connect()
    town.settle()


def test_linking_goes_on_although_the_answer_to_the_list_was_lost() -> None:
    town, (alice,) = a_town("alice")
    town.meddle = lambda device, item: None if isinstance(item, Answered) and item.said == Done() else item
    laptop = town.pair(alice)
    laptop.connect()
    town.settle(alice, laptop)
    assert alice.told(DeviceLinked) == []
    again(town, alice)
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
    assert laptop.told(Provisioned) == [Provisioned()]


def test_a_device_that_was_told_by_an_older_list_asks_for_the_one_that_names_it() -> None:
    town, (alice,) = a_town("alice")
    signed = alice.machine.sealed.trust.of(alice.me.account)
    assert signed is not None
    laptop = town.pair(alice)

    def older(device: int, item: FromServer) -> FromServer | None:
        if device != laptop.me.device or not isinstance(item, Devices):
            return item
        return Devices(item.ref, item.account, signed.version, {alice.me.device: alice.me.registration}, signed.signed)

    town.meddle = older
    laptop.connect()
    town.settle()
    assert (laptop.told(Provisioned), laptop.told(Reachable)) == ([Provisioned()], [])
    town.meddle = lambda device, item: item
    town.wait(600_000)
    town.settle()
    assert laptop.told(Reachable) == [Reachable()]


def test_a_device_that_cannot_judge_what_it_gets_looks_again_from_the_beginning() -> None:
    """What it cannot acknowledge may leave no credit for the word that it waits for."""
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice, secret=b"not yet the code")
    laptop.connect()
    town.settle()
    bob.says(alice, "hello")
    town.settle()
    assert (laptop.plugged, laptop.machine.hangup) == (True, None)
    town.wait(ClientLimits().blind_ms)
    assert (laptop.plugged, laptop.machine.hangup) == (False, BLIND)


def test_a_device_that_waits_for_its_word_and_has_nothing_else_stays_connected() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.meddle = lambda device, item: None if isinstance(item, Entries) else item
    laptop.connect()
    town.settle()
    town.wait(ClientLimits().blind_ms)
    assert (laptop.plugged, laptop.told(Provisioned)) == (True, [])


def test_a_session_that_cannot_be_begun_anew_because_the_device_is_gone_is_left_as_it_is() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    town.wait(ClientLimits().restart_ms + 1)
    sessions = alice.machine.sealed.sessions
    sessions.renew(bob.me.device)
    bob.cut()
    town.say(SERVER, Unlinked(bob.me.device))
    woken: list[str] = []
    devices = {bob.me.device: bob.me.registration}
    assert not sessions.ready(devices, "who", lambda: woken.append("good"), lambda: woken.append("not now"))
    alice.look()
    town.settle()
    assert (woken, alice.store.claims()) == (["good"], {})
