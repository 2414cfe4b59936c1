from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest

from engines.faults import timing
from engines.faults.timing import LogLine, Outages, Takeovers


class Clock:
    now = 1_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def a_clock() -> object:
    clock = Clock()
    with mock.patch.object(timing, "time", clock):
        yield clock


def away(outages: Outages, clock: Clock, engine: str, begin: float, end: float) -> None:
    clock.now = begin
    outages.begin(engine)
    clock.now = end
    outages.end(engine)


def test_time_without_an_engine_is_not_counted_and_not_twice(clock: Clock) -> None:
    outages = Outages()
    away(outages, clock, "kafka", 1_010, 1_020)
    away(outages, clock, "cassandra", 1_015, 1_030)
    assert [outages.served(1_000, 1_040), outages.served(1_000, 1_012), outages.served(1_012, 1_028)] == [20, 10, 0]
    clock.now = 1_050
    outages.begin("kafka")
    assert outages.served(1_040, 1_060) == 10


def served(shard: int, at: float) -> LogLine:
    return LogLine(datetime.fromtimestamp(at, UTC), "a shard is served", shard)


def test_a_takeover_lasts_from_the_owners_death_until_the_shard_is_served(clock: Clock) -> None:
    takeovers = Takeovers(Outages())
    takeovers.said("one", served(1, 990))
    takeovers.said("one", served(2, 990))
    takeovers.said("one", LogLine(datetime.now(UTC) - timedelta(1), "shards lost", lost=[2]))
    takeovers.gone("one", is_dead=True)
    assert list(takeovers.waiting) == [1]
    takeovers.said("two", served(1, 1_002.5))
    assert (takeovers.took_s, list(takeovers.waiting)) == ([2.5], [])


def test_a_shard_that_its_owner_has_kept_is_not_waited_for(clock: Clock) -> None:
    takeovers = Takeovers(Outages())
    takeovers.said("one", served(1, 990))
    takeovers.gone("one", is_dead=False)
    takeovers.forget_kept()
    assert (takeovers.took_s, list(takeovers.waiting)) == ([], [])
