"""What happens when, from one seed.

Knows:   people, devices, the duration, and the message rate.
Never:   reads a clock or another source of randomness: the same seed gives the same plan.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import TypeAlias

from msgspec import Struct

from nightmail.model.words import Lane

GROUP_SHARE = 0.25
"""So much of what a member of the group writes goes to the group."""


class Fault(StrEnum):
    """Faults of one device's connection."""

    CUT = "cut"
    """Both ends are closed at once."""
    HALF_OPEN = "half-open"
    """The device is gone and the server does not notice: the next connection is a second one of the same device."""
    DEAD_SERVER = "dead server"
    """The server is gone and the device does not notice."""
    STALL_UP = "stalled up"
    STALL_DOWN = "stalled down"
    """One direction is held back for a while, then everything gets through."""
    DROP_ACKS = "dropped acks"
    """Everything that the device sends is dropped, including acknowledgements; then the connection is cut."""
    DROP_ANSWERS = "dropped answers"
    """Everything that the server sends is dropped, so the device sends again what was accepted."""
    DOUBLE_SENDS = "doubled sends"
    """Every frame with messages reaches the server twice."""
    RIVAL = "rival"
    """A second connection of the same device reads, and never acknowledges."""
    REOPEN = "reopened"
    """The client is closed, and opened again after a while."""


class Write(Struct, frozen=True):
    at_ms: int
    by: int
    """Number of the device."""
    to: int
    """Number of the person, or of the group (`Plan.group`)."""
    lane: Lane
    size: int
    """Bytes of padding."""


class Break(Struct, frozen=True):
    at_ms: int
    device: int
    fault: Fault
    for_ms: int


class Kill(Struct, frozen=True):
    """The server is killed with SIGKILL, and started again on the same folder."""

    at_ms: int
    down_ms: int


Step: TypeAlias = Write | Break | Kill


class Plan(Struct, frozen=True):
    seed: int = 1
    people: int = 4
    devices: int = 2
    """Of each person."""
    seconds: float = 60.0
    rate: float = 5.0
    """Messages per second and device, on average."""
    kills: bool = True
    faults: bool = True

    @property
    def group(self) -> int:
        """The number under which messages go to the group: that behind the last person."""
        return self.people

    @property
    def members(self) -> range:
        """The people who share a group: all but the last, unless there are only two."""
        return range(max(2, self.people - 1))

    def owner(self, device: int) -> int:
        return device // self.devices

    def devices_of(self, person: int) -> range:
        return range(person * self.devices, (person + 1) * self.devices)

    def steps(self) -> list[Step]:
        """Everything that happens, in order."""
        chance = Random(self.seed)
        end = int(self.seconds * 1_000)
        steps: list[Step] = []
        for device in range(self.people * self.devices):
            steps += self._writing(device, end, Random(chance.getrandbits(64)))
            if self.faults:
                steps += _breaking(device, end, Random(chance.getrandbits(64)))
        if self.kills:
            steps += _killing(end, Random(chance.getrandbits(64)))
        return sorted(steps, key=lambda step: step.at_ms)

    def _writing(self, device: int, end: int, chance: Random) -> list[Step]:
        writes: list[Step] = []
        others = [person for person in range(self.people) if person != self.owner(device)]
        at = 0.0
        while (at := at + chance.expovariate(self.rate) * 1_000) < end:
            # Sometimes many at once, like a phone that was offline.
            for _ in range(chance.randint(10, 40) if chance.random() < 0.01 else 1):
                lane = Lane.HIGH if chance.random() < 0.1 else Lane.NORMAL
                size = chance.choice((0, 40, 200, 500, 4_000))
                in_group = self.owner(device) in self.members and chance.random() < GROUP_SHARE
                to = self.group if in_group else chance.choice(others)
                writes.append(Write(int(at), device, to, lane, size))
        return writes


def _breaking(device: int, end: int, chance: Random) -> list[Step]:
    """One fault after another, with pauses of 0.1 to 3 seconds."""
    faults: list[Step] = []
    at = chance.uniform(200, 2_000)
    while at < end:
        fault = chance.choice(list(Fault))
        for_ms = chance.randint(50, 2_500)
        faults.append(Break(int(at), device, fault, for_ms))
        at += for_ms + chance.uniform(100, 3_000)
    return faults


def _killing(end: int, chance: Random) -> list[Step]:
    kills: list[Step] = []
    at = chance.uniform(0.2, 0.5) * min(end, 10_000)
    while at < end:
        kills.append(Kill(int(at), chance.randint(0, 1_000)))
        at += chance.uniform(6_000, 14_000)
    return kills
