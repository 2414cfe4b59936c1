"""Sealed devices that are in groups together, over the real fold."""

from __future__ import annotations

from collections.abc import Sequence

from nightmail.client.errors import ClientError
from nightmail.client.messages import Message
from nightmail.core.state import NEWEST_FOLD
from nightmail.e2ee.content import Content
from nightmail.model.limits import FoldLimits
from nightmail.model.roster import GroupChange, GroupSettings
from nightmail.model.words import Kind, Lane
from tests.client.town import Device, Town


def a_town(*handles: str, seed: int = 0, limits: FoldLimits | None = None) -> tuple[Town, list[Device]]:
    """Everybody is online and has a signed list."""
    town = Town(seed, sealed=True, fold=NEWEST_FOLD, limits=limits)
    devices = [town.join(handle) for handle in handles]
    for device in devices:
        device.connect()
    town.settle()
    return town, devices


def a_group(town: Town, maker: Device, *others: Device, settings: GroupSettings | None = None) -> int:
    """A group of these, all of whom know it."""
    found: list[int | ClientError] = []
    accounts = [other.me.account for other in others]
    maker.machine.groups(town.now).changes.make("Friends", accounts, settings or GroupSettings(), found.append)
    maker.look()
    town.settle()
    assert found, "nobody answered"
    assert isinstance(found[0], int), found[0]
    return found[0]


def change(town: Town, by: Device, group: int, made: GroupChange) -> int | ClientError:
    found: list[int | ClientError] = []
    by.machine.groups(town.now).changes.change(group, lambda _: made, found.append)
    by.look()
    town.settle()
    assert found, "nobody answered"
    return found[0]


def add(town: Town, by: Device, group: int, *others: Device) -> int | ClientError:
    found: list[int | ClientError] = []
    by.machine.groups(town.now).changes.add(group, [other.me.account for other in others], found.append)
    by.look()
    town.settle()
    assert found, "nobody answered"
    return found[0]


def writes(device: Device, group: int, text: str, lane: Lane = Lane.NORMAL) -> Message:
    message = device.machine.write(group, Content(Kind.TEXT, text), device.town.now, lane=lane)
    device.look()
    return message


def texts(device: Device, group: int) -> list[str]:
    return [message.text for message in device.store.history(group, 1_000)]


def members(device: Device, group: int) -> list[int]:
    return sorted(device.machine.groups(0).known.members(group))


def accounts(devices: Sequence[Device]) -> list[int]:
    return sorted(device.me.account for device in devices)
