"""The town of the scenario `sleepers` wakes whom it should, so that its count of needless wakes can be believed."""

from __future__ import annotations

from bench.node.sleeping_town import SleepingTown
from nightmail.model.ids import device_id
from nightmail.model.words import Kind

MINUTE_MS = 60_000


def devices(town: SleepingTown, *people: int) -> list[int]:
    return [device_id(town.accounts[person], 1) for person in people]


def test_who_has_mail_is_woken_once_and_nobody_else() -> None:
    town = SleepingTown(20)
    town.write(3)
    town.write(3)
    town.write(7, Kind.CONTROL)
    town.write(5)
    town.go_on(MINUTE_MS)
    assert town.pushed == devices(town, 3, 5)


def test_who_is_left_asleep_is_woken_again_after_a_quarter_of_an_hour() -> None:
    town = SleepingTown(2)
    town.write(1)
    town.go_on(16 * MINUTE_MS, tick_ms=1_000)
    assert town.pushed == devices(town, 1, 1)


def test_without_tokens_nobody_is_woken() -> None:
    town = SleepingTown(2, has_tokens=False)
    town.write(1)
    town.go_on(MINUTE_MS)
    assert town.pushed == []
