from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.cluster.prompts import PromptLimits, Prompts
from nightmail.model.ids import account_id, account_of, device_id
from nightmail.model.rows import Account, Device
from nightmail.model.words import Lane, Platform
from tests.engine.cluster.rig import SHARDS, Told, home

A_DEVICE = Device(7, b"", "phone", Platform.CLI, low=False)
A_LOW_DEVICE = Device(7, b"", "phone", Platform.CLI, low=True)
LIMITS = PromptLimits(refresh_ms=1_000, prompts_max=2)
ACCOUNTS = [account_id(f"person{number}") for number in range(40)]
FIRST, SECOND, THIRD = [device_id(account, 1) for account in ACCOUNTS if home(account) == 1][:3]
ELSEWHERE = next(device_id(account, 1) for account in ACCOUNTS if home(account) == 3)


class Rig:
    def __init__(self) -> None:
        self.now = 0
        self.listener = Told()
        self.asked: dict[int, Callable[[Account | None], None]] = {}
        self.prompts = Prompts(self.listener, self.asked.__setitem__, SHARDS, lambda: self.now, LIMITS)

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


def an_account(*devices: int) -> Account:
    return Account("somebody", devices=dict.fromkeys(devices, A_DEVICE))


def test_a_device_whose_removal_was_not_told_is_dismissed_by_the_next_prompt() -> None:
    rig = Rig()
    rig.connect(FIRST, SECOND)
    rig.tick(1_000)
    assert list(rig.asked) == [account_of(FIRST), account_of(SECOND)]
    rig.asked[account_of(FIRST)](an_account(SECOND))
    rig.asked[account_of(SECOND)](an_account(SECOND))
    assert rig.listener.take() == [("dismissed", FIRST), ("settled",)]


def test_a_device_that_was_not_told_that_its_keys_run_low_is_told_with_each_prompt_until_they_do_not() -> None:
    rig = Rig()
    rig.connect(FIRST)
    low, stocked = Account("somebody", devices={FIRST: A_LOW_DEVICE}), an_account(FIRST)
    told: list[list[tuple[object, ...]]] = []
    for row in (low, low, stocked):
        rig.tick(1_000)
        rig.asked.pop(account_of(FIRST))(row)
        told.append(rig.listener.take())
    assert told == [[("low", FIRST), ("settled",)], [("low", FIRST), ("settled",)], []]


def test_nobody_is_told_anything_whose_account_could_not_be_found_or_who_has_left_meanwhile() -> None:
    rig = Rig()
    rig.connect(FIRST, SECOND)
    rig.tick(1_000)
    rig.prompts.note_connection(SECOND, here=False)
    rig.asked[account_of(FIRST)](None)
    rig.asked[account_of(SECOND)](an_account())
    assert rig.listener.take() == []
    rig.connect(THIRD)
    rig.tick(1_000)
    rig.prompts.note_connection(THIRD, here=False)
    rig.asked[account_of(THIRD)](Account("somebody", devices={THIRD: A_LOW_DEVICE}))
    assert rig.listener.take() == []


def test_an_account_is_asked_for_once_as_long_as_nobody_answers() -> None:
    rig = Rig()
    rig.connect(FIRST)
    rig.tick(1_000)
    rig.asked.clear()
    rig.tick(1_000)
    assert rig.asked == {}
