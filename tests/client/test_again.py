from __future__ import annotations

from random import Random

from nightmail.client.again import Again
from nightmail.client.hub import Hub
from nightmail.client.memory_store import MemoryStore
from nightmail.e2ee.chance import SYSTEM
from tests.client.script import ME, STEADY


def test_attempts_come_ever_later_until_one_succeeds_and_none_while_nobody_hears_it() -> None:
    hub = Hub(MemoryStore(), ME, STEADY, Random(1), SYSTEM)
    made: list[int] = []
    again = Again(hub, lambda: made.append(hub.now))
    for wait in (1_000, 2_000, 4_000):
        again.later()
        assert again.due == hub.now + wait
        hub.now += wait - 1
        again.tick()
        assert made[-1:] != [hub.now]
        hub.now += 1
        again.tick()
        assert (made[-1], again.due) == (hub.now, None)
    again.succeeded()
    again.later()
    assert again.due == hub.now + 1_000
    again.lost()
    hub.now += 10_000
    again.tick()
    assert len(made) == 3
    again.connected()
    assert len(made) == 4
