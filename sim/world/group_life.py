"""What the people of a sealed town do with groups: make them, come and go, change them, and talk.

Knows:   how often each thing happens, and the sizes from which on a group has a log.
Never:   does anything that an app could not do with the client library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nightmail.client.errors import ClientError
from nightmail.client.machine.machine import Machine
from nightmail.client.store.group_rows import GroupStanding
from nightmail.e2ee.content import Content
from nightmail.model.roster import (
    Departure,
    GroupChange,
    GroupReceipts,
    GroupSettings,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
)
from nightmail.model.words import Kind, Lane

from .front import Limits

if TYPE_CHECKING:
    from .device import Device
    from .town import Town

MOST_GROUPS = 2
PATIENCE_MS = 1_500
"""So long nobody else makes one."""
SHARE = 0.5
"""Of what a device does, so much is in groups."""
SETTINGS = (
    GroupSettings(),
    GroupSettings(timer_ms=2_000),
    GroupSettings(timer_ms=20_000),
    GroupSettings(changers=Role.MEMBER),
    GroupSettings(receipts=GroupReceipts.AT_LEAST_ONE),
    GroupSettings(receipts=GroupReceipts.NONE),
)


@dataclass
class GroupDeeds:
    """What people do in groups, by weight."""

    write_in_group: float = 40
    mention: float = 6
    read_in_group: float = 5
    add: float = 4
    expel: float = 2
    depart: float = 0.5
    promote: float = 1.5
    rename: float = 1
    settings: float = 1
    change_at_once: float = 1


class GroupLife:
    def __init__(self, town: Town, off: frozenset[str]) -> None:
        self.town, self.world = town, town.world
        chance = self.world.chance
        most = chance.choice((2, 3, 3, 100))
        fold = replace(
            town.limits.fold, group_write_members=most, group_read_members=most + 1, group_changes=10_000,
            relistings=60, ttl_ms=chance.choice((0, 3_600_000)),
        )  # fmt: skip
        town.limits = Limits(fold, *town.limits[1:])
        town.client_limits = replace(town.client_limits, group_asks=10_000, group_answers=10_000)
        self.deeds = GroupDeeds()
        for deed in fields(GroupDeeds):
            if deed.name in off:
                setattr(self.deeds, deed.name, 0)
        self._names = self._tried_at = 0

    def act(self, device: Device) -> bool:
        """Whether it did something in a group."""
        chance = self.world.chance
        if chance.random() >= SHARE:
            return False
        joined = joined_groups(device)
        if len(self.town.story.groups) < MOST_GROUPS and self._tried_at + PATIENCE_MS < self.world.now:
            self._make(device)
        elif not joined:
            return False
        else:
            group, weights = chance.choice(joined), vars(self.deeds)
            self._do(device, group, chance.choices(list(weights), list(weights.values()))[0])
        return True

    def _make(self, device: Device) -> None:
        if not device.machine.sealer.is_reachable or not device.online:
            return
        self._tried_at = self.world.now
        chance, others = self.world.chance, [p for p in self.town.people if p is not device.person]
        accounts = [person.account for person in chance.sample(others, chance.randint(1, len(others)))]
        settings = chance.choice(SETTINGS)

        def made(said: int | ClientError) -> None:
            self._answered(device, "made", said)

        device.do(lambda machine: machine.groups(device.now).changes.make("Friends", accounts, settings, made))

    def _do(self, device: Device, group: int, deed: str) -> None:
        chance = self.world.chance
        other = chance.choice([person for person in self.town.people if person is not device.person]).account
        match deed:
            case "write_in_group":
                self.write(device, group)
            case "mention":
                self.write(device, group, (other,))
            case "read_in_group":
                device.read(group)
            case "add":
                self._add(device, group, self._outside(device, group) or other)
            case "expel":
                self._change(device, group, deed, lambda _: Removal((other,)))
            case "depart":
                self._change(device, group, deed, lambda roster: _departure(roster, device.person.account))
            case "promote":
                role = chance.choice((Role.ADMIN, Role.ADMIN, Role.MEMBER))
                self._change(device, group, deed, lambda _: RoleChange(other, role))
            case "rename":
                self._names += 1
                name = f"Friends {self._names}"
                device.do(lambda machine: machine.groups(device.now).names.rename(group, name))
            case "settings":
                settings = chance.choice(SETTINGS)
                self._change(device, group, deed, lambda _: SettingsChange(settings))
            case _:
                for each in self.town.devices:
                    self._change(each, group, deed, lambda _: SettingsChange(chance.choice(SETTINGS)))

    def _outside(self, device: Device, group: int) -> int:
        """Somebody who is not in the group, perhaps no more; 0: everybody is."""
        members = set(device.machine.groups(device.now).known.members(group))
        outside = [person.account for person in self.town.people if person.account not in members]
        return self.world.chance.choice(outside) if outside else 0

    def write(self, device: Device, group: int, mentions: tuple[int, ...] = ()) -> None:
        if device.store.waiting >= self.town.most_waiting:
            return
        lane = Lane.HIGH if mentions else Lane.NORMAL
        self._names += 1
        content = Content(Kind.TEXT, f"{device.name} in a group, {self._names}", mentions=mentions)
        seen = device.store.conversation(group).seen

        def write(machine: Machine) -> None:
            message = machine.write(group, content, device.now, lane=lane)
            device.witness.writes(message.id, seen, message.life_ms)

        device.do(write)

    def write_to_all(self, device: Device) -> None:
        """Once to each group that it is in."""
        for group in joined_groups(device):
            self.write(device, group)

    def _add(self, device: Device, group: int, account: int) -> None:
        def added(said: int | ClientError) -> None:
            self._answered(device, "add", said)

        device.do(lambda machine: machine.groups(device.now).changes.add(group, [account], added))

    def _change(self, device: Device, group: int, deed: str, make: Callable[[Roster], GroupChange]) -> None:
        def changed(said: int | ClientError) -> None:
            self._answered(device, deed, said)

        device.do(lambda machine: machine.groups(device.now).changes.change(group, make, changed))

    def _answered(self, device: Device, deed: str, said: int | ClientError) -> None:
        word = "done" if isinstance(said, int) else said.__class__.__name__
        self.world.hit(f"{deed}: {word}")
        self.world.tell(device.name, f"{deed}: {word}")


def joined_groups(device: Device) -> list[int]:
    return [row.group for row in device.store.groups() if row.standing is GroupStanding.JOINED]


def _departure(roster: Roster, account: int) -> Departure:
    """The last admin names somebody else."""
    admins = [member.account for member in roster.members.values() if member.role is Role.ADMIN]
    others = sorted(roster.members.keys() - {account})
    return Departure(others[0] if admins == [account] and others else 0)
