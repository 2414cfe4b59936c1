"""A server that lies to one device, and then comes to its senses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nightmail.client.events import KeysRefused, ListRefused
from nightmail.wire.items import Devices, FromServer
from tests.client.town import Device, Town

Item = TypeVar("Item")


def forge(town: Town, victim: Device, kind: type[Item], change: Callable[[Item], FromServer | None]) -> None:
    """From now on, everything of one kind that is handed to the victim is changed first."""
    town.meddle = lambda device, item: change(item) if device == victim.me.device and isinstance(item, kind) else item


def honest(town: Town) -> None:
    town.meddle = lambda device, item: item


def sentences(device: Device, kind: type[ListRefused] | type[KeysRefused]) -> str:
    return " ".join(event.why for event in device.told(kind))


def forge_list(town: Town, victim: Device, account: int, change: Callable[[Devices], Devices]) -> None:
    forge(town, victim, Devices, lambda item: change(item) if item.account == account else item)


def recover(town: Town) -> None:
    """The server has become honest; what waits goes out by its schedule."""
    honest(town)
    town.settle()
    town.wait(400_000)
    town.settle()
