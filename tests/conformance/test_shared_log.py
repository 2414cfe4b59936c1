"""Every `SharedLog`, held to the words of cluster/ports.py. Without faults: what those may do is the simulator's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from nightmail.engine.cluster.ports import SharedLog
from nightmail.engine.ports import Failed, Stored
from sim.faults.partition import Partition, PartitionFaults, SimSharedLog
from sim.world.world import World
from tests.engine.cluster.rig import HeldSharedLog

SHARDS = 3


class Made(NamedTuple):
    log: SharedLog
    settle: Callable[[], object]
    """Let everything happen that is under way."""


def simulated() -> Made:
    world = World(1)
    faults = PartitionFaults(world, on=False)
    log = SimSharedLog(world, [Partition(world, faults) for _ in range(SHARDS)], faults)
    return Made(log, lambda: world.run_until(world.now + 60_000))


def held() -> Made:
    return Made(HeldSharedLog(SHARDS), lambda: None)


@pytest.fixture(params=[simulated, held], ids=["simulated", "held"])
def made(request: pytest.FixtureRequest) -> Made:
    return request.param()


class Reader:
    def __init__(self) -> None:
        self.batches: list[tuple[int, int, list[bytes]]] = []
        self.trimmed = 0

    def take(self, batch: Stored) -> None:
        self.batches.append((batch.first, batch.at, list(batch.records)))

    def trimmed_away(self) -> None:
        self.trimmed += 1


def append(made: Made, shard: int, at: int, *records: bytes) -> int | None:
    answers: list[int | None] = []
    made.log.append(shard, at, records, answers.append)
    made.settle()
    (first,) = answers
    return first


def end(made: Made, shard: int) -> int | Failed:
    answers: list[int | Failed] = []
    made.log.end(shard, answers.append)
    made.settle()
    (last,) = answers
    return last


def test_each_shard_has_offsets_of_its_own_without_holes(made: Made) -> None:
    assert made.log.shards == SHARDS
    assert [append(made, 0, 5, b"a", b"b"), append(made, 1, 5, b"c"), append(made, 0, 6, b"d")] == [1, 1, 3]
    assert [end(made, shard) for shard in range(SHARDS)] == [3, 1, 0]


def test_a_follower_gets_what_is_there_and_what_comes_in_order(made: Made) -> None:
    append(made, 0, 5, b"a", b"b")
    append(made, 0, 6, b"c")
    all_of_it, the_rest = Reader(), Reader()
    made.log.follow(0, 0, all_of_it)
    made.log.follow(0, 2, the_rest)
    append(made, 1, 7, b"not for it")
    append(made, 0, 7, b"d")
    assert all_of_it.batches == [(1, 5, [b"a", b"b"]), (3, 6, [b"c"]), (4, 7, [b"d"])]
    assert the_rest.batches == all_of_it.batches[1:]


def test_a_follower_that_stopped_gets_nothing(made: Made) -> None:
    reader = Reader()
    stop = made.log.follow(0, 0, reader)
    append(made, 0, 5, b"a")
    stop()
    stop()
    append(made, 0, 5, b"b")
    assert reader.batches == [(1, 5, [b"a"])]


def test_one_who_asks_for_what_is_trimmed_is_told_so_once(made: Made) -> None:
    append(made, 0, 5, b"a")
    append(made, 0, 5, b"b")
    made.log.trim(0, 1, 9)
    late, in_time = Reader(), Reader()
    made.log.follow(0, 0, late)
    made.log.follow(0, 1, in_time)
    made.settle()
    append(made, 0, 5, b"c")
    assert (late.trimmed, late.batches) == (1, [])
    assert (in_time.trimmed, in_time.batches) == (0, [(2, 5, [b"b"]), (3, 5, [b"c"])])


def test_trimming_less_than_before_changes_nothing(made: Made) -> None:
    append(made, 0, 5, b"a")
    append(made, 0, 5, b"b")
    made.log.trim(0, 2, 9)
    made.log.trim(0, 1, 9)
    reader = Reader()
    made.log.follow(0, 1, reader)
    made.settle()
    append(made, 0, 5, b"c")
    assert (reader.trimmed, reader.batches) == (1, [])
