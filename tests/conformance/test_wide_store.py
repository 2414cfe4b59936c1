"""Every `WideStore`, held to the words of cluster/store.py: what rows on it rely on when writes come late or twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from nightmail.engine.cluster.store import NotesBlock, WideStore
from nightmail.model.rows import EntryRange, Kept, RowKey
from sim.faults.wide_store import SimWideStore
from tests.engine.cluster.patient import at_once
from tests.engines.cassandra import SyncCassandraRows
from tests.engines.started import StartedEngines

ROW = RowKey(Kept.MAILBOX, -5, 7)


class Made(NamedTuple):
    store: WideStore
    shard: int
    answer: Callable[[Callable[[Callable[[Any], None]], object]], Any]
    """Ask, and wait for the answer."""
    is_late_proof: bool
    """A write that comes after its removal stays dead."""


@pytest.fixture(params=["simulated", "cassandra"])
def made(request: pytest.FixtureRequest, engines: StartedEngines) -> Iterator[Made]:
    if request.param == "simulated":

        def answer(ask: Callable[[Callable[[Any], None]], object]) -> Any:
            answers: list[Any] = []
            ask(answers.append)
            (found,) = answers
            return found

        yield Made(SimWideStore(Random(1), at_once), 1, answer, is_late_proof=False)
        return
    rows = SyncCassandraRows(engines)
    yield Made(rows.store, engines.next_number(), rows.answer, is_late_proof=True)
    rows.close()


def write(made: Made, version: int, value: bytes | None) -> None:
    assert made.answer(lambda done: made.store.write_row(made.shard, ROW, version, value, done)) is None


def read(made: Made, upto: int) -> bytes | None:
    return made.answer(lambda done: made.store.read_row(made.shard, ROW, upto, done))


def test_the_newest_version_up_to_a_bound_is_read_and_a_tombstone_is_one(made: Made) -> None:
    for version, value in ((3, b"three"), (9, b"nine"), (6, None)):
        write(made, version, value)
    assert [read(made, upto) for upto in (2, 3, 5, 6, 8, 9, 99)] == [
        None,
        b"three",
        b"three",
        None,
        None,
        b"nine",
        b"nine",
    ]


def test_a_trim_removes_what_is_below_and_nothing_else(made: Made) -> None:
    for version in (3, 6, 9):
        write(made, version, b"%d" % version)
    assert made.answer(lambda done: made.store.trim_row(made.shard, ROW, 6, done)) is None
    assert [read(made, upto) for upto in (5, 6, 9)] == [None, b"6", b"9"]


def test_what_comes_after_its_removal_stays_dead(made: Made) -> None:
    if not made.is_late_proof:
        pytest.skip("the simulated clocks may bring it back, which no reader sees")
    store, shard = made.store, made.shard
    write(made, 6, b"6")
    made.answer(lambda done: store.trim_row(shard, ROW, 6, done))
    write(made, 3, b"late")
    assert read(made, 5) is None
    made.answer(lambda done: store.trim_entries(shard, EntryRange(8, 0, 4), done))
    for seq in (4, 5):
        made.answer(lambda done, seq=seq: store.write_entry(shard, 8, seq, b"e", done))
    assert made.answer(lambda done: store.read_entries(shard, EntryRange(8, 0, 9), done)) == [(5, b"e")]
    made.answer(lambda done: store.trim_forwards(shard, 2, 4, done))
    for k in (4, 5):
        made.answer(lambda done, k=k: store.write_forward(shard, 2, k, b"f", done))
    assert made.answer(lambda done: store.read_forwards(shard, 2, 0, 9, 9, done)) == [(5, b"f")]


def test_a_pointer_only_grows_whatever_is_written_last(made: Made) -> None:
    store, shard = made.store, made.shard
    assert made.answer(lambda done: store.read_pointer(shard, done)) == 0
    stands = [made.answer(lambda done, upto=upto: store.advance(shard, upto, done)) for upto in (4, 9, 6, 9, 10)]
    assert stands == [4, 9, 9, 9, 10]
    assert made.answer(lambda done: store.read_pointer(shard, done)) == 10


def test_a_block_written_by_two_owners_is_one_of_theirs(made: Made) -> None:
    one = NotesBlock(7, 3, 50, (b"a", b"b"), frozenset((1,)))
    two = NotesBlock(7, 5, 51, (b"b",), frozenset((1, 2)))
    for block in (one, two):
        assert made.answer(lambda done, block=block: made.store.write_block(made.shard, block, done)) is None


def test_many_rows_at_once_are_all_there(made: Made) -> None:
    left = set(range(600))

    def write_all(done: Callable[[Any], None]) -> None:
        def written(number: int, failed: object) -> None:
            assert failed is None
            left.discard(number)
            if not left:
                done(None)

        for number in range(600):
            made.store.write_row(
                made.shard, RowKey(Kept.ACCOUNT, number), 5, b"r" * number, lambda failed, n=number: written(n, failed)
            )

    made.answer(write_all)
    for number in (0, 1, 599):
        key = RowKey(Kept.ACCOUNT, number)
        assert made.answer(lambda done, key=key: made.store.read_row(made.shard, key, 5, done)) == b"r" * number
