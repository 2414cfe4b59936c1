from __future__ import annotations

from nightmail.model.answers import GroupAccepted, ScheduleTaken
from nightmail.model.rows import GroupEntry
from nightmail.model.schedule_rows import SCHEDULED_FROM, ScheduleState
from tests.core.group_world import GROUP
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import Person


def a_group(world: ScheduleWorld) -> tuple[Person, Person]:
    ada, bob = world.join("ada", 2), world.join("bob")
    world.make(ada[1], ada, bob)
    return ada, bob


def written(world: ScheduleWorld, device: int) -> list[GroupEntry]:
    return [entry for entry in world.entries(device) if isinstance(entry, GroupEntry) and entry.by]


def test_it_fires_into_a_group_once_and_for_everybody(world: ScheduleWorld) -> None:
    ada, bob = a_group(world)
    assert isinstance(world.do(ada[1], world.group_scheduled(ada[1], 1_000)), ScheduleTaken)
    assert isinstance(world.write(ada[1], 1), GroupAccepted)
    world.wait(1_000)
    world.wait(1_000)
    numbers = [(entry.n, entry.group_seq) for entry in written(world, bob[1])]
    assert [n for n, _ in numbers] == [1, SCHEDULED_FROM + 1]
    assert numbers[0][1] < numbers[1][1]
    assert [entry.n for entry in written(world, ada[2])] == [1, SCHEDULED_FROM + 1]
    assert written(world, ada[1]) == []
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.n) == (ScheduleState.DELIVERED, SCHEDULED_FROM + 1)


def test_a_moved_epoch_sends_it_back_until_it_is_sealed_again(world: ScheduleWorld) -> None:
    ada, bob = a_group(world)
    world.do(ada[1], world.group_scheduled(ada[1], 1_000))
    world.link(bob)
    world.wait(1_000)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.is_stale) == (ScheduleState.PENDING, True)
    assert isinstance(world.do(ada[1], world.group_resealed(ada[1])), ScheduleTaken)
    assert world.state(ada) is ScheduleState.DELIVERED
    assert [entry.ciphertext for entry in written(world, bob[2])] == [b"again"]


def test_who_is_no_member_any_more_does_not_fire(world: ScheduleWorld) -> None:
    ada, bob = a_group(world)
    world.do(bob[1], world.group_scheduled(bob[1], 1_000))
    world.remove(ada[1], bob)
    world.wait(1_000)
    row = world.row(bob)
    assert row is not None
    assert (row.state, row.error) == (ScheduleState.FAILED, "not_member")


def test_to_a_group_that_does_not_exist_it_fails(world: ScheduleWorld) -> None:
    ada = world.join("ada")
    world.do(ada[1], world.group_scheduled(ada[1], 1_000, GROUP + 2))
    world.wait(1_000)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.error) == (ScheduleState.FAILED, "unknown_group")
