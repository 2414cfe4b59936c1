"""Every `Rows`, held to the words of ports.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, EntryRange, Failed, Found, Overtaken, RowKey, Rows, saving
from nightmail.engine.sqlite import SqliteRows, SqliteSettings
from nightmail.engine.worker import Worker
from nightmail.model.rows import Kept
from tests.engine.cluster.patient import PatientRows, calm_rows
from tests.engines.cassandra import SyncCassandraRows
from tests.engines.started import StartedEngines

BOB, EVE = (1 << 61) - 1, 12 << 12 | 1
QUEUE = BOB << 1 | 1
MAILBOX, SHARD = RowKey(Kept.MAILBOX, BOB), RowKey(Kept.SHARD, 0)
Make = Callable[[Path, StartedEngines], Rows]


def inline(job: Callable[[], None]) -> None:
    job()


def sqlite_inline(folder: Path) -> Rows:
    return SqliteRows(folder, post=inline, execute=inline, entropy=random.Random(1).randbytes)


def sqlite_alone(folder: Path) -> Rows:
    quick = SqliteSettings(wal_truncate_ms=3, forget_bytes=2)
    return SqliteRows(folder, post=inline, execute=inline, entropy=bytes, settings=quick, alone=True)


MAKERS: dict[str, Make] = {
    "memory": lambda *_: MemoryRows(),
    "sqlite": lambda folder, _: sqlite_inline(folder),
    "sqlite-alone": lambda folder, _: sqlite_alone(folder),
    "wide": lambda *_: calm_rows(),
    "wide-faulty": lambda *_: PatientRows(seed=1),
    "wide-resurrecting": lambda *_: PatientRows(seed=2, resurrects=True),
    "cassandra": lambda _, engines: SyncCassandraRows(engines),
}


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def rows(request: pytest.FixtureRequest, tmp_path: Path, engines: StartedEngines) -> Iterator[Rows]:
    made: Rows = request.param(tmp_path, engines)
    yield made
    made.close()


def save(rows: Rows, checkpoint: Checkpoint) -> Overtaken | Failed | None:
    outcomes: list[Overtaken | Failed | None] = []
    rows.save(checkpoint, outcomes.append)
    (outcome,) = outcomes
    return outcome


def load(rows: Rows, *needs: RowKey | EntryRange) -> Found:
    answers: list[Found | Overtaken | Failed] = []
    rows.load(needs, answers.append)
    (found,) = answers
    assert not isinstance(found, Overtaken | Failed)
    return found


def test_at_birth_there_is_nothing(rows: Rows) -> None:
    assert rows.pointer == 0
    assert load(rows, SHARD, EntryRange(QUEUE, 1, 9)) == [None, []]
    assert list(rows.recall((BOB,), 0)) == []


def test_what_is_saved_is_found_in_the_order_it_is_asked_for(rows: Rows) -> None:
    saved = Checkpoint(
        7,
        1,
        rows=[saving(SHARD, 7, b"shard"), saving(MAILBOX, 3, b"")],
        entries=[(QUEUE, 2, b"two"), (QUEUE, 1, b"one"), (QUEUE - 1, 1, b"other")],
    )
    assert save(rows, saved) is None
    assert rows.pointer == 7
    assert load(rows, EntryRange(QUEUE, 1, 9), MAILBOX, SHARD, EntryRange(QUEUE, 2, 2), MAILBOX._replace(b=1)) == [
        [(1, b"one"), (2, b"two")],
        b"",
        b"shard",
        [(2, b"two")],
        None,
    ]


@pytest.mark.parametrize("beyond", [1 << 63, -(1 << 63) - 1, 1 << 200])
def test_what_no_store_could_hold_does_not_exist(rows: Rows, beyond: int) -> None:
    edge = (1 << 63) - 1
    kept = [saving(RowKey(Kept.ACCOUNT, edge), 1, b"row"), saving(RowKey(Kept.STREAM, edge, edge), 1, b"stream")]
    save(rows, Checkpoint(1, 1, rows=kept, entries=[(edge, 1, b"entry")]))
    at_the_edge = RowKey(Kept.ACCOUNT, edge), RowKey(Kept.STREAM, edge, edge), EntryRange(edge, 1, edge)
    assert load(rows, *at_the_edge) == [b"row", b"stream", [(1, b"entry")]]
    for kind in Kept:
        assert load(rows, RowKey(kind, beyond), RowKey(kind, edge, beyond), SHARD) == [None, None, None]
    assert load(rows, EntryRange(beyond, 1, 9), EntryRange(edge, -(1 << 80), 1 << 80)) == [[], []]


def test_a_row_is_replaced_and_removed(rows: Rows) -> None:
    save(rows, Checkpoint(1, 1, rows=[saving(SHARD, 1, b"old"), saving(MAILBOX, 1, b"box")]))
    save(rows, Checkpoint(2, 1, rows=[saving(SHARD, 2, b"new"), saving(MAILBOX, 2, None)]))
    assert load(rows, SHARD, MAILBOX) == [b"new", None]
    save(rows, Checkpoint(3, 1, rows=[saving(MAILBOX, 3, b"again")]))
    assert load(rows, SHARD, MAILBOX) == [b"new", b"again"]


def test_cleared_and_dropped_entries_are_gone_and_their_neighbours_are_not(rows: Rows) -> None:
    save(rows, Checkpoint(1, 1, entries=[(queue, seq, b"%d" % seq) for queue in (4, 5, 6) for seq in range(1, 7)]))
    save(rows, Checkpoint(2, 1, cleared=[(5, 3), (6, 0), (9, 9)], dropped=[(5, 5), (4, 1), (9, 1)]))
    seqs: list[list[int]] = []
    for found in load(rows, *(EntryRange(queue, 1, 9) for queue in (4, 5, 6))):
        assert isinstance(found, list)
        seqs.append([seq for seq, _ in found])
    assert seqs == [[2, 3, 4, 5, 6], [4, 6], [1, 2, 3, 4, 5, 6]]


def test_the_same_checkpoint_may_be_saved_again(rows: Rows) -> None:
    again = Checkpoint(
        4,
        1,
        rows=[saving(SHARD, 4, b"x")],
        entries=[(3, 1, b"e")],
        cleared=[(2, 9)],
        notes=[b"n", b"o"],
        noted=frozenset((1,)),
    )
    assert [save(rows, again), save(rows, again)] == [None, None]
    assert load(rows, SHARD, EntryRange(3, 0, 9)) == [b"x", [(1, b"e")]]
    assert list(rows.recall((1,), 0)) == [b"n", b"o"]


def load_forwards(rows: Rows, shard: int, after: int, upto: int, limit: int = 99) -> Sequence[tuple[int, bytes]]:
    answers: list[Sequence[tuple[int, bytes]] | Failed] = []
    rows.load_forwards(shard, after, upto, limit, answers.append)
    (found,) = answers
    assert not isinstance(found, Failed)
    return found


def drop_forwards(rows: Rows, shard: int, upto: int) -> Failed | None:
    answers: list[Failed | None] = []
    rows.drop_forwards(shard, upto, answers.append)
    (answer,) = answers
    return answer


def test_saved_forwards_are_read_in_order_and_by_pages(rows: Rows) -> None:
    assert load_forwards(rows, 1, 0, 9) == []
    save(rows, Checkpoint(1, 1, forwards=[(1, 9, b"nine"), (1, 10, b"ten"), (2, 1, b"other"), (1, 11, b"eleven")]))
    save(rows, Checkpoint(2, 1, forwards=[(1, 12, b"twelve")]))
    assert load_forwards(rows, 1, 0, 12, 2) == [(9, b"nine"), (10, b"ten")]
    assert load_forwards(rows, 1, 10, 12, 2) == [(11, b"eleven"), (12, b"twelve")]
    assert load_forwards(rows, 1, 9, 10) == [(10, b"ten")]
    assert (load_forwards(rows, 1, 12, 99), load_forwards(rows, 2, 0, 9), load_forwards(rows, 3, 0, 9)) == (
        [],
        [(1, b"other")],
        [],
    )


def test_a_forward_saved_again_is_the_same_one(rows: Rows) -> None:
    again = Checkpoint(1, 1, forwards=[(1, 5, b"five")])
    assert [save(rows, again), save(rows, again)] == [None, None]
    save(rows, Checkpoint(2, 1, forwards=[(1, 5, b"five"), (1, 6, b"six")]))
    assert load_forwards(rows, 1, 0, 9) == [(5, b"five"), (6, b"six")]


def test_dropped_forwards_are_gone_and_those_behind_them_and_of_other_shards_are_not(rows: Rows) -> None:
    save(rows, Checkpoint(1, 1, forwards=[(shard, k, b"%d" % k) for shard in (1, 2) for k in (1, 2, 3)]))
    assert [drop_forwards(rows, 1, 2), drop_forwards(rows, 1, 2), drop_forwards(rows, 3, 9)] == [None, None, None]
    save(rows, Checkpoint(2, 1, forwards=[(1, 4, b"4")]))
    assert load_forwards(rows, 1, 0, 9) == [(3, b"3"), (4, b"4")]
    assert load_forwards(rows, 2, 0, 9) == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_an_older_checkpoint_is_refused(rows: Rows) -> None:
    save(rows, Checkpoint(4, 1, rows=[saving(SHARD, 4, b"new")]))
    assert save(rows, Checkpoint(3, 1, rows=[saving(SHARD, 3, b"old")])) == Overtaken(4)
    assert (rows.pointer, load(rows, SHARD)) == (4, [b"new"])


def test_notes_are_recalled_oldest_first_by_device_and_time(rows: Rows) -> None:
    for upto in range(1, 41):
        noted = frozenset((BOB,)) if upto % 2 else frozenset((BOB, EVE))
        save(rows, Checkpoint(upto, 1_000 + upto, notes=[b"%d" % upto], noted=noted))
    save(rows, Checkpoint(41, 2_000))
    assert list(rows.recall((BOB,), 0)) == [b"%d" % upto for upto in range(1, 41)]
    assert list(rows.recall((BOB,), 1_039)) == [b"39", b"40"]
    assert list(rows.recall((EVE,), 1_000)) == [b"%d" % upto for upto in range(2, 41, 2)]
    assert list(rows.recall((BOB,), 1_041)) == []


def test_a_block_is_recalled_piece_by_piece_and_once_for_all_devices(rows: Rows) -> None:
    save(rows, Checkpoint(1, 1, notes=[b"1", b"2", b"3"], noted=(BOB, EVE)))
    save(rows, Checkpoint(2, 2, notes=[b"4"], noted=(EVE,)))
    save(rows, Checkpoint(3, 3, notes=[b"5", b"6"], noted=(BOB,)))
    assert list(rows.recall((BOB, EVE), 0)) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert list(rows.recall((BOB,), 0)) == [b"1", b"2", b"3", b"5", b"6"]
    rows.forget(3)
    assert list(rows.recall((BOB, EVE), 0)) == [b"5", b"6"]


def test_forgotten_notes_are_gone(rows: Rows) -> None:
    for upto in range(1, 10):
        save(rows, Checkpoint(upto, upto, notes=[b"%d" % upto], noted=frozenset((BOB,))))
    rows.forget(8)
    assert list(rows.recall((BOB,), 0)) == [b"8", b"9"]
    rows.forget(100)
    assert list(rows.recall((BOB,), 0)) == []


def test_a_checkpoint_is_not_seen_before_its_done(tmp_path: Path) -> None:
    """On SQLite with its thread: the commit comes first, the loop's turn later."""
    loop: SimpleQueue[Callable[[], None]] = SimpleQueue()
    saver = Worker(loop.put)
    rows = SqliteRows(tmp_path, post=loop.put, execute=saver, entropy=bytes)
    outcomes: list[object] = []
    rows.save(Checkpoint(1, 1, rows=[saving(SHARD, 1, b"one")]), outcomes.append)
    turn = loop.get(timeout=60)
    assert (load(rows, SHARD), rows.pointer, outcomes) == ([None], 0, [])
    turn()
    assert (load(rows, SHARD), rows.pointer, outcomes) == ([b"one"], 1, [None])
    rows.close()
    saver.close()


# --- against the model ------------------------------------------------------------------------

keys = st.builds(RowKey, st.sampled_from(Kept), st.integers(0, 2), st.integers(0, 1))
queues, seqs, bodies = st.integers(0, 3), st.integers(1, 8), st.binary(max_size=300)
checkpoints = st.builds(
    lambda rows, entries, cleared, dropped, notes, noted, forwards: Checkpoint(
        upto=0,
        at=0,
        rows=[saving(key, 1, value) for key, value in rows.items()],
        entries=[(queue, seq, body) for (queue, seq), body in entries.items()],
        cleared=list(cleared.items()),
        dropped=list(dropped),
        notes=notes,
        noted=noted,
        forwards=[(shard, k, record) for (shard, k), record in forwards.items()],
    ),
    st.dictionaries(keys, st.none() | bodies, max_size=6),
    st.dictionaries(st.tuples(queues, seqs), bodies, max_size=8),
    st.dictionaries(queues, st.integers(0, 8), max_size=3),
    st.sets(st.tuples(queues, seqs), max_size=4),
    st.lists(st.binary(max_size=20), max_size=3),
    st.frozensets(st.integers(1, 5), max_size=3),
    st.dictionaries(st.tuples(st.integers(0, 2), seqs), bodies, max_size=6),
)
EVERYTHING = [
    *(RowKey(kind, a, b) for kind in Kept for a in range(3) for b in range(2)),
    *(EntryRange(queue, low, high) for queue in range(4) for low, high in ((1, 8), (2, 5))),
]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=st.lists(st.tuples(checkpoints, st.booleans(), st.integers(0, 5)), max_size=6), alone=st.booleans())
def test_sqlite_does_what_the_model_does(
    history: list[tuple[Checkpoint, bool, int]], alone: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, make = tmp_path_factory.mktemp("rows"), sqlite_alone if alone else sqlite_inline
    model, real = MemoryRows(), make(folder)
    for upto, (checkpoint, reopened, forgotten) in enumerate(history, 1):
        numbered = Checkpoint(
            upto, upto, checkpoint.rows, checkpoint.entries, checkpoint.cleared, checkpoint.dropped,
            checkpoint.notes, checkpoint.noted, checkpoint.forwards,
        )  # fmt: skip
        assert save(model, numbered) is save(real, numbered) is None
        assert drop_forwards(model, upto % 3, forgotten) is drop_forwards(real, upto % 3, forgotten) is None
        model.forget(forgotten)
        real.forget(forgotten)
        if reopened:
            real.close()
            real = make(folder)
        assert real.pointer == model.pointer
        assert load(real, *EVERYTHING) == load(model, *EVERYTHING)
        for shard, limit in ((0, 2), (1, 9), (2, 1)):
            assert load_forwards(real, shard, 1, 7, limit) == load_forwards(model, shard, 1, 7, limit)
        for device in range(1, 6):
            assert list(real.recall((device,), upto - 2)) == list(model.recall((device,), upto - 2))
    real.close()
