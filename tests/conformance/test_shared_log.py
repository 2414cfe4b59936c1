"""Every `SharedLog`, held to the words of cluster/ports.py. Without faults: what those may do is the simulator's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple

import pytest

from nightmail.engine.cluster.kafka.log import KafkaLog
from nightmail.engine.cluster.kafka.settings import KafkaSettings
from nightmail.engine.cluster.kafka.topics import make_topic
from nightmail.engine.cluster.ports import SharedLog
from nightmail.engine.ports import Failed, Stored, last_of
from sim.faults.partition import Partition, PartitionFaults, SimSharedLog
from sim.world.world import World
from tests.engine.cluster.rig import HeldSharedLog
from tests.engines.posted import Posted
from tests.engines.started import StartedEngines

SHARDS = 3


class Made(NamedTuple):
    log: SharedLog
    settle: Callable[[], object]
    """Let everything happen that is under way."""

    def places(self, *counts: int) -> list[int]:
        """Where batches of so many records begin, and where the next one would."""
        found = [1]
        for count in counts:
            found.append(last_of(found[-1], count, self.log.span) + 1)
        return found


@contextmanager
def simulated(span: int, _engines: StartedEngines) -> Iterator[Made]:
    world = World(1)
    faults = PartitionFaults(world, on=False)
    faults.span = span
    log = SimSharedLog(world, [Partition(world, faults) for _ in range(SHARDS)], faults)
    yield Made(log, lambda: world.run_until(world.now + 60_000))


@contextmanager
def held(_engines: StartedEngines) -> Iterator[Made]:
    yield Made(HeldSharedLog(SHARDS), lambda: None)


@contextmanager
def on_kafka(engines: StartedEngines) -> Iterator[Made]:
    posted = Posted()
    settings = KafkaSettings(brokers=engines.address("kafka"), topic=engines.new_name("log"), replicas=1)
    assert make_topic(settings, SHARDS)
    log = KafkaLog(settings, SHARDS, posted.post)

    def settle() -> None:
        posted.run_until(lambda: not log.under_way)
        ends: dict[int, int | Failed] = {}
        for shard in range(SHARDS):
            log.end(shard, partial(ends.__setitem__, shard))
        posted.run_until(lambda: len(ends) == SHARDS)
        posted.run_until(
            lambda: all(not each.alive or each.next * log.span == ends[each.shard] for each in log.followings)
        )

    yield Made(log, settle)
    log.close()


MAKERS = {"simulated": partial(simulated, 1), "spans": partial(simulated, 4_096), "held": held, "kafka": on_kafka}


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest, engines: StartedEngines) -> Iterator[Made]:
    make: Callable[[StartedEngines], AbstractContextManager[Made]] = MAKERS[request.param]
    with make(engines) as made:
        yield made


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
    one, two, three = made.places(2, 1)
    assert made.log.shards == SHARDS
    assert [append(made, 0, 5, b"a", b"b"), append(made, 1, 5, b"c"), append(made, 0, 6, b"d")] == [one, 1, two]
    assert [end(made, shard) for shard in range(SHARDS)] == [three - 1, made.places(1)[1] - 1, 0]


def test_a_follower_gets_what_is_there_and_what_comes_in_order(made: Made) -> None:
    one, two, three, _ = made.places(2, 1, 1)
    append(made, 0, 5, b"a", b"b")
    append(made, 0, 6, b"c")
    all_of_it, the_rest = Reader(), Reader()
    made.log.follow(0, 0, all_of_it)
    made.log.follow(0, two - 1, the_rest)
    append(made, 1, 7, b"not for it")
    append(made, 0, 7, b"d")
    assert all_of_it.batches == [(one, 5, [b"a", b"b"]), (two, 6, [b"c"]), (three, 7, [b"d"])]
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
    _, two, three = made.places(1, 1)
    append(made, 0, 5, b"a")
    append(made, 0, 5, b"b")
    made.log.trim(0, two - 1, 9)
    made.settle()
    late, in_time = Reader(), Reader()
    made.log.follow(0, 0, late)
    made.log.follow(0, two - 1, in_time)
    made.settle()
    append(made, 0, 5, b"c")
    assert (late.trimmed, late.batches) == (1, [])
    assert (in_time.trimmed, in_time.batches) == (0, [(two, 5, [b"b"]), (three, 5, [b"c"])])


def test_trimming_less_than_before_changes_nothing(made: Made) -> None:
    _, two, three = made.places(1, 1)
    append(made, 0, 5, b"a")
    append(made, 0, 5, b"b")
    made.log.trim(0, three - 1, 9)
    made.settle()
    made.log.trim(0, two - 1, 9)
    made.settle()
    reader = Reader()
    made.log.follow(0, two - 1, reader)
    made.settle()
    append(made, 0, 5, b"c")
    assert (reader.trimmed, reader.batches) == (1, [])


def test_appends_that_overlap_stay_in_their_order(made: Made) -> None:
    reader, answers = Reader(), list[int | None]()
    made.log.follow(0, 0, reader)
    for n in range(40):
        made.log.append(0, n, [b"%d" % n], answers.append)
    made.settle()
    assert answers == made.places(*[1] * 39)
    assert reader.batches == [(first, n, [b"%d" % n]) for n, first in enumerate(answers)]
