"""Every `Registry`, held to the words of ports.py, by two nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from nightmail.engine.ports import HELD, Seat
from tests.engines.redis import OnRedis
from tests.engines.started import StartedEngines

from .registry_rig import HERE, SEAT_MS, THERE, InMemory, Rig, Simulated

BOB, EVE = 7 << 12 | 1, 9 << 12 | 1
OLD, NEW = Seat(HERE, 1, 100), Seat(THERE, 2, 200)
SECOND_MS = 1_000
SLACK_MS = 300
"""A real engine's time goes on between two questions."""


RIGS: dict[str, Callable[[StartedEngines], Rig]] = {
    "memory": lambda _: InMemory(),
    "simulated": lambda _: Simulated(),
    "redis": OnRedis,
}


@pytest.fixture(params=list(RIGS))
def rig(request: pytest.FixtureRequest, engines: StartedEngines) -> Iterator[Rig]:
    made = RIGS[request.param](engines)
    yield made
    made.close()


def take(rig: Rig, device: int, seat: Seat) -> None:
    rig.nodes[seat.node].take(device, seat, rig.now)
    rig.settle()


def find(rig: Rig, device: int) -> list[Seat | None]:
    """Both nodes' word."""
    return [rig.answer(partial(node.find, device, rig.now)) for node in rig.nodes.values()]


def leave(rig: Rig, device: int, seat: Seat) -> bool:
    return bool(rig.answer(partial(rig.nodes[seat.node].leave, device, seat)))


def claim(rig: Rig, device: int, node: str = HERE) -> int:
    return int(rig.answer(partial(rig.nodes[node].claim_wake, device, rig.now)))


def test_who_sits_down_is_found_and_nobody_else_is(rig: Rig) -> None:
    take(rig, BOB, OLD)
    assert (find(rig, BOB), find(rig, EVE)) == ([OLD, OLD], [None, None])


def test_a_newer_connection_displaces_an_older_one_which_hears_of_it_when_it_stays(rig: Rig) -> None:
    take(rig, BOB, OLD)
    take(rig, BOB, NEW)
    take(rig, BOB, OLD)
    assert find(rig, BOB) == [NEW, NEW]
    assert set(rig.displaced) == {(BOB, OLD)}


def test_staying_seated_displaces_nobody_and_lasts_longer(rig: Rig) -> None:
    take(rig, BOB, OLD)
    rig.wait(SEAT_MS - SLACK_MS)
    take(rig, BOB, OLD)
    rig.wait(SEAT_MS - SLACK_MS)
    assert (find(rig, BOB)[1], rig.displaced) == (OLD, [])


def test_a_seat_that_is_not_taken_again_is_free_after_its_lifetime(rig: Rig) -> None:
    take(rig, BOB, NEW)
    rig.wait(SEAT_MS - SLACK_MS)
    assert find(rig, BOB)[0] == NEW
    rig.wait(SLACK_MS)
    assert find(rig, BOB)[0] is None
    take(rig, BOB, OLD)
    assert (find(rig, BOB)[0], rig.displaced) == (OLD, [])


def test_who_leaves_is_not_found(rig: Rig) -> None:
    take(rig, BOB, OLD)
    assert (leave(rig, BOB, OLD), leave(rig, BOB, OLD)) == (True, False)
    assert find(rig, BOB) == [None, None]


def test_who_was_displaced_does_not_take_the_new_one_along(rig: Rig) -> None:
    take(rig, BOB, OLD)
    take(rig, BOB, NEW)
    assert (leave(rig, BOB, OLD), find(rig, BOB), leave(rig, BOB, NEW)) == (False, [NEW, NEW], True)


def test_a_device_is_woken_once_in_a_second_whichever_node_does_it(rig: Rig) -> None:
    assert (claim(rig, BOB), claim(rig, EVE)) == (0, 0)
    for node in rig.nodes:
        assert 0 < claim(rig, BOB, node) <= SECOND_MS
    rig.wait(SECOND_MS)
    assert claim(rig, BOB, THERE) == 0
    assert 0 < claim(rig, BOB) <= SECOND_MS


def test_no_node_wakes_a_device_that_sits_anywhere(rig: Rig) -> None:
    take(rig, BOB, OLD)
    assert [claim(rig, BOB, node) for node in rig.nodes] == [HELD, HELD]
    leave(rig, BOB, OLD)
    assert claim(rig, BOB, THERE) == 0


def test_a_registry_that_never_lost_anything_says_so(rig: Rig) -> None:
    assert [node.lost_at for node in rig.nodes.values()] == [None, None]


def test_what_was_lost_is_said_again_and_every_node_knows_of_the_loss(rig: Rig) -> None:
    take(rig, BOB, OLD)
    rig.lose()
    assert (find(rig, BOB), claim(rig, BOB, THERE)) == ([OLD, OLD], HELD)
    assert all(node.lost_at is not None for node in rig.nodes.values())
