from __future__ import annotations

from nightmail.engine.cluster.prompts import PromptLimits, Prompts
from nightmail.model.ids import account_id, device_id
from nightmail.model.words import Lane
from tests.engine.cluster.rig import SHARDS, Told, home

LIMITS = PromptLimits(refresh_ms=1_000, prompts_max=2)
ACCOUNTS = [account_id(f"person{number}") for number in range(40)]
FIRST, SECOND, THIRD = [device_id(account, 1) for account in ACCOUNTS if home(account) == 1][:3]
ELSEWHERE = next(device_id(account, 1) for account in ACCOUNTS if home(account) == 3)


class Rig:
    def __init__(self) -> None:
        self.now = 0
        self.listener = Told()
        self.prompts = Prompts(self.listener, SHARDS, lambda: self.now, LIMITS)

    def connect(self, *devices: int) -> None:
        for device in devices:
            self.prompts.note_connection(device, here=True)

    def tick(self, ms: int = 0) -> list[tuple[object, ...]]:
        self.now += ms
        self.prompts.tick()
        return self.listener.take()


def prompted(*devices: int) -> list[tuple[object, ...]]:
    told: list[tuple[object, ...]] = []
    for device in devices:
        told += [("grew", device, Lane.NORMAL), ("grew", device, Lane.HIGH), ("changed", device)]
    return [*told, ("settled",)]


def test_every_connected_device_is_prompted_again_and_again() -> None:
    rig = Rig()
    rig.connect(FIRST)
    assert rig.tick(999) == []
    assert rig.tick(1) == prompted(FIRST)
    assert rig.tick(999) == []
    assert rig.tick(1) == prompted(FIRST)


def test_a_device_that_left_is_not_prompted() -> None:
    rig = Rig()
    rig.connect(FIRST, SECOND)
    rig.prompts.note_connection(FIRST, here=False)
    assert rig.tick(1_000) == prompted(SECOND)


def test_another_owner_means_that_its_devices_are_prompted_at_once_a_few_in_each_tick() -> None:
    rig = Rig()
    rig.connect(FIRST, ELSEWHERE, SECOND, THIRD)
    rig.now = 10
    rig.prompts.owner_changed(1)
    assert [rig.tick(), rig.tick(), rig.tick()] == [prompted(FIRST, SECOND), prompted(THIRD), []]
