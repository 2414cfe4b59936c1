"""Every `Registry`, held to the words of ports.py."""

from __future__ import annotations

import pytest

from nightmail.engine.memory import SEAT_MS, MemoryRegistry
from nightmail.engine.ports import Registry, Seat

BOB, EVE = 7, 9
OLD, NEW = Seat("here", 1, 100), Seat("there", 2, 200)


@pytest.fixture(params=[MemoryRegistry])
def registry(request: pytest.FixtureRequest) -> Registry:
    made: Registry = request.param()
    return made


def test_who_sits_down_is_found_and_nobody_else_is(registry: Registry) -> None:
    assert registry.take(BOB, OLD, 100) is None
    assert (registry.find(BOB, 101), registry.find(EVE, 101)) == (OLD, None)


def test_a_newer_connection_displaces_an_older_one(registry: Registry) -> None:
    registry.take(BOB, OLD, 100)
    assert registry.take(BOB, NEW, 200) == OLD
    assert registry.find(BOB, 200) == NEW


def test_an_older_connection_is_refused_as_its_own_displacer(registry: Registry) -> None:
    registry.take(BOB, NEW, 200)
    assert registry.take(BOB, OLD, 300) == OLD
    assert registry.find(BOB, 300) == NEW


def test_staying_seated_displaces_nobody_and_lasts_longer(registry: Registry) -> None:
    registry.take(BOB, OLD, 0)
    assert registry.take(BOB, OLD, SEAT_MS - 1) is None
    assert registry.find(BOB, 2 * SEAT_MS - 2) == OLD


def test_a_seat_that_is_not_taken_again_is_free_after_its_lifetime(registry: Registry) -> None:
    registry.take(BOB, NEW, 0)
    assert (registry.find(BOB, SEAT_MS - 1), registry.find(BOB, SEAT_MS)) == (NEW, None)
    assert registry.take(BOB, OLD, SEAT_MS) is None


def test_who_leaves_is_not_found(registry: Registry) -> None:
    registry.take(BOB, OLD, 0)
    registry.leave(BOB, OLD)
    registry.leave(BOB, OLD)
    assert registry.find(BOB, 1) is None


def test_who_was_displaced_does_not_take_the_new_one_along(registry: Registry) -> None:
    registry.take(BOB, OLD, 100)
    registry.take(BOB, NEW, 200)
    registry.leave(BOB, OLD)
    assert registry.find(BOB, 201) == NEW


def test_only_who_had_the_seat_is_told_that_it_was_left(registry: Registry) -> None:
    registry.take(BOB, OLD, 100)
    registry.take(BOB, NEW, 200)
    assert (registry.leave(BOB, OLD), registry.leave(BOB, NEW), registry.leave(BOB, NEW)) == (False, True, False)


def test_a_device_is_woken_once_in_a_second(registry: Registry) -> None:
    assert [registry.claim_wake(BOB, now) for now in (5_000, 5_000, 5_400, 6_000, 6_001)] == [0, 1_000, 600, 0, 999]
    assert registry.claim_wake(EVE, 6_001) == 0


def test_a_registry_that_never_lost_anything_says_so(registry: Registry) -> None:
    assert registry.lost_at is None
