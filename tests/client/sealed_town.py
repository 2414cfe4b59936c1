"""Sealed devices in one town, and what happens to whole devices there."""

from __future__ import annotations

from typing import TypeVar

from nightmail.model.answers import Joined
from nightmail.model.ids import SERVER
from nightmail.model.records import Registered, Unlinked
from nightmail.model.words import Lane, Platform
from nightmail.wire.items import Entries, FromServer
from tests.client.town import Device, Town

B = TypeVar("B")


def a_town(*handles: str, seed: int = 0) -> tuple[Town, list[Device]]:
    town = Town(seed, sealed=True)
    devices = [town.join(handle) for handle in handles]
    for device in devices:
        device.connect()
    town.settle()
    return town, devices


def said_by(device: Device, kind: type[B]) -> list[B]:
    assert device.session is not None
    return [body for body in device.session.heard if isinstance(body, kind)]


def agrees(town: Town, device: Device, peer: Device, *, verified: bool) -> bool:
    """The person says that of the key that is known now."""
    account = peer.me.account
    return device.machine.agree(account, town.now, key=device.machine.account_key(account), verified=verified)


def reset(town: Town, device: Device) -> Device:
    """The person lost the device and registers again."""
    device.cut()
    town.say(SERVER, Unlinked(device.me.device))
    me = device.me
    said = town.say(SERVER, Registered(me.account, me.handle, 9, town.chance.randbytes(32), "new", Platform.CLI))
    assert isinstance(said, Joined), said
    town.devices.remove(device)
    return town.rejoin(me.handle, said.device, 9)


def pass_time(town: Town, *waits: int) -> None:
    for ms in waits:
        town.wait(ms)
        town.settle()


def register_again(town: Town, device: Device, registration: int = 9) -> Device:
    """The person has lost the device, and takes the account back with another."""
    me = device.me
    body = Registered(me.account, me.handle, registration, town.chance.randbytes(32), "new", Platform.CLI, True)
    said = town.say(SERVER, body)
    assert isinstance(said, Joined), said
    if device.plugged:
        device.cut()
    town.devices.remove(device)
    return town.rejoin(me.handle, said.device, registration)


def revoke(town: Town, primary: Device, device: Device) -> None:
    town.say(primary.me.device, Unlinked(device.me.device))
    primary.machine.forget_own_devices()
    primary.machine.sign_again(town.now)
    primary.look()


def stop_meddling(town: Town, device: Device) -> None:
    """The server is honest from now on, over a new connection."""
    town.meddle = lambda device, item: item
    device.cut()
    device.connect()
    town.settle()


def keep_back(town: Town, device: Device, lane: Lane) -> list[FromServer]:
    """From now on nothing of a lane reaches a device."""
    held: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == device.me.device and isinstance(item, Entries) and item.lane is lane:
            held.append(item)
            return None
        return item

    town.meddle = meddle
    return held
