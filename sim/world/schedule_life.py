"""What the people of a sealed town do with messages for later: schedule them, and take some of them back.

Never:   does anything that an app could not do with the client library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nightmail.e2ee.content import Content
from nightmail.model.words import Kind

from .front import Limits
from .group_life import joined_groups

if TYPE_CHECKING:
    from .device import Device
    from .town import Town

SHARE = 0.3
"""Of what a device does, so much is about messages for later."""
CANCELS = 0.3
IN_GROUPS = 0.6
"""Of a device that is in a group, so many go there."""
AHEAD_MS = ((0, 300), (300, 5_000), (5_000, 30_000))
OPEN = 12
"""So many of a device wait at most."""


class ScheduleLife:
    def __init__(self, town: Town) -> None:
        self.town, self.world = town, town.world
        chance = self.world.chance
        fold = replace(town.limits.fold, reseal_ms=chance.choice((2_000, 60_000)), ttl_ms=0)
        town.limits = Limits(fold, *town.limits[1:])
        self._count = 0

    def act(self, device: Device) -> bool:
        """Whether the device does something of this kind now."""
        chance = self.world.chance
        if chance.random() >= SHARE:
            return False
        waiting = device.store.open_schedules()
        if chance.random() < CANCELS:
            rows = device.store.schedules()
            if rows:
                ident = chance.choice(rows).id
                device.do(lambda machine: machine.cancel(ident, device.now))
        elif len(list(waiting)) < OPEN:
            self._schedule(device)
        return True

    def _schedule(self, device: Device) -> None:
        chance = self.world.chance
        to = chance.choice([person for person in self.town.people if person is not device.person]).account
        if (joined := joined_groups(device)) and chance.random() < IN_GROUPS:
            to = chance.choice(joined)
        self._count += 1
        text = f"{device.name} later {self._count}"
        at = self.world.now + chance.randint(*chance.choice(AHEAD_MS))
        device.do(lambda machine: machine.schedule(to, Content(Kind.TEXT, text), at, device.now, life_ms=0))
