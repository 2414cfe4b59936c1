"""Whoever comes in the place of a device that is gone gets what that one never had, in whatever order it is learned."""

from __future__ import annotations

from nightmail.client.events import MessageFailed
from nightmail.e2ee.errors import Undecipherable
from nightmail.model.answers import Accepted, Joined
from nightmail.model.ids import SERVER
from nightmail.model.records import Registered, Unlinked
from nightmail.model.words import Platform
from nightmail.wire.items import Answered
from tests.client.town import Device, Town


def a_town(*handles: str) -> tuple[Town, list[Device]]:
    town = Town(0, sealed=True)
    devices = [town.join(handle) for handle in handles]
    for device in devices:
        device.connect()
    town.settle()
    return town, devices


def reset(town: Town, device: Device) -> Device:
    """The person lost the device and registers anew."""
    device.cut()
    town.say(SERVER, Unlinked(device.me.device))
    me = device.me
    said = town.say(SERVER, Registered(me.account, me.handle, 9, town.chance.randbytes(32), "new", Platform.CLI))
    assert isinstance(said, Joined), said
    town.devices.remove(device)
    return town.rejoin(me.handle, said.device, 9)


def test_a_successor_gets_it_although_the_removal_is_heard_before_the_answer() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    town.meddle = lambda device, item: None if isinstance(item, Answered) and isinstance(item.said, Accepted) else item
    message = alice.says(bob, "two")
    town.settle(alice)
    new = reset(town, bob)
    town.settle(alice)
    assert alice.state(message) == "pending"
    town.meddle = lambda device, item: item
    new.connect()
    alice.cut()
    alice.connect()
    for _ in range(4):
        town.settle()
        town.wait(10_000)
    assert (new.heard(), alice.state(message), alice.told(MessageFailed)) == (["two"], "delivered", [])


def test_a_successor_gets_what_was_to_be_sealed_again_for_a_device_that_is_gone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()

    def damaged(_entry: object) -> None:
        raise Undecipherable

    bob.machine.sealed.sessions.open = damaged  # type: ignore[method-assign]
    message = alice.says(bob, "two")
    alice.exchange()
    bob.exchange()
    town.wait(10)
    bob.exchange()
    alice.cut()
    new = reset(town, bob)
    new.connect()
    town.settle(new)
    alice.connect()
    for _ in range(4):
        town.settle()
        town.wait(10_000)
    assert (new.heard(), alice.state(message), alice.told(MessageFailed)) == (["two"], "delivered", [])
