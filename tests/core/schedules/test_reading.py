from __future__ import annotations

from nightmail.model.answers import ScheduleFate, SchedulesFound
from nightmail.model.limits import DAY_MS
from nightmail.model.records import SchedulesAsked
from nightmail.model.refusals import UnknownDevice
from nightmail.model.schedule_rows import SCHEDULED_FROM, ScheduleState
from tests.core.group_world import GROUP
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import Person


def a_pair(world: ScheduleWorld) -> tuple[Person, Person]:
    return world.join("ada", 2), world.join("bob")


def fates(world: ScheduleWorld, by: int, *serials: int) -> tuple[ScheduleFate, ...]:
    said = world.do(by, SchedulesAsked(serials))
    assert isinstance(said, SchedulesFound), said
    return said.schedules


def test_each_device_of_the_account_learns_how_far_its_schedules_have_come(world: ScheduleWorld) -> None:
    ada, bob = a_pair(world)
    world.schedule(ada[1], bob, 1_000, name="first")
    world.schedule(ada[1], bob, 9_000, name="second")
    world.wait(1_000)
    at = world.now
    first, second = world.id(ada[1], "first"), world.id(ada[1], "second")
    for device in (ada[1], ada[2]):
        assert fates(world, device, 1, 2, 3) == (
            ScheduleFate(
                1, first, ada[1], ScheduleState.DELIVERED, False, at, "", SCHEDULED_FROM + 1, at, 0
            ),
            ScheduleFate(2, second, ada[1], ScheduleState.PENDING, False, at + 8_000, "", 0, 0, 0),
        )  # fmt: skip


def test_a_stale_one_says_so_and_one_in_a_group_names_its_number_there(world: ScheduleWorld) -> None:
    ada, bob = a_pair(world)
    world.make(ada[1], ada, bob)
    world.schedule(ada[1], bob, 1_000)
    world.do(ada[1], world.group_scheduled(ada[1], 500, GROUP, "in a group"))
    world.wait(500)
    world.link(bob)
    world.wait(500)
    stale, in_group = fates(world, ada[2], 1, 2)
    assert (stale.state, stale.is_stale) == (ScheduleState.PENDING, True)
    assert (in_group.state, in_group.n) == (ScheduleState.DELIVERED, SCHEDULED_FROM + 1)
    (entry,) = [entry for entry in world.entries(bob[1]) if entry.id == in_group.id]
    assert in_group.group_seq == entry.group_seq > 0


def test_nobody_learns_of_the_schedules_of_others(world: ScheduleWorld) -> None:
    ada, bob = a_pair(world)
    world.schedule(ada[1], bob, 1_000)
    assert fates(world, bob[1], 1) == ()
    stranger = ada[1] + 9
    assert world.do(stranger, SchedulesAsked((1,))) == UnknownDevice(stranger)


def test_what_went_into_a_conversation_is_remembered_as_long_as_messages_are(world: ScheduleWorld) -> None:
    ada, bob = a_pair(world)
    world.schedule(ada[1], bob, 1_000)
    world.wait(1_000)
    world.wait(29 * DAY_MS)
    assert [fate.state for fate in fates(world, ada[2], 1)] == [ScheduleState.DELIVERED]
    world.wait(2 * DAY_MS)
    assert fates(world, ada[2], 1) == ()
