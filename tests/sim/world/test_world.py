from __future__ import annotations

import pytest

from sim.world.world import Broken, World


def test_things_happen_in_the_order_of_their_time_and_then_of_their_scheduling() -> None:
    world, happened = World(1), list[str]()
    for delay, name in ((20, "c"), (10, "a"), (10, "b")):
        world.later(delay, lambda name=name: happened.append(name))
    world.run_until(world.now + 20)
    assert happened == ["a", "b", "c"]
    assert world.events == 3


def test_time_stands_where_it_was_run_to_and_what_is_later_waits() -> None:
    world, happened = World(1, start_ms=1_000), list[int]()
    for delay in (5, 6):
        world.later(delay, lambda: happened.append(world.now))
    world.run_until(1_005)
    assert (world.now, happened) == (1_005, [1_005])
    world.run_until(2_000)
    assert (world.now, happened) == (2_000, [1_005, 1_006])


def test_what_happens_may_schedule_more_for_the_same_moment_but_not_for_the_past() -> None:
    world, happened = World(1, start_ms=0), list[int]()
    world.later(7, lambda: world.later(-3, lambda: happened.append(world.now)))
    world.run_until(7)
    assert happened == [7]


def test_one_seed_is_one_chance() -> None:
    def draw(world: World) -> list[object]:
        return [world.maybe(0.5), world.between(1, 1_000), world.chance.randbytes(4)]

    assert draw(World(5)) == draw(World(5)) != draw(World(6))


def test_the_story_says_when_who_and_what_and_forgets_its_beginning() -> None:
    world = World(1)
    world.later(1_234, lambda: world.tell("node", "loses power"))
    world.run_until(world.now + 2_000)
    assert list(world.story) == ["    1.234  node           loses power"]
    for n in range(5_000):
        world.tell("ada", f"writes {n}")
    assert (len(world.story), world.story[-1]) == (4_000, "    2.000  ada            writes 4999")


def test_a_broken_promise_names_itself() -> None:
    with pytest.raises(Broken, match="nothing lost: m1 is gone") as caught:
        raise Broken("nothing lost", "m1 is gone")
    assert caught.value.promise == "nothing lost"
