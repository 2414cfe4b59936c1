from __future__ import annotations

from functools import partial
from random import Random

import pytest

from nightmail.engine.cluster.store import NotesBlock
from nightmail.engine.ports import EntryRange, Failed, RowKey
from nightmail.model.rows import Kept
from sim.faults.wide_store import REFUSED, Faults, SimWideStore
from sim.runs.owners import Schedule

KEY = RowKey(Kept.MAILBOX, 1)


def ignore(_: object) -> None:
    pass


@pytest.mark.parametrize("resurrects", [False, True])
def test_a_write_that_comes_after_its_removal_is_gone_unless_removals_are_forgotten(resurrects: bool) -> None:
    left: set[tuple[int, ...]] = set()
    for seed in range(40):
        schedule = Schedule()
        store = SimWideStore(Random(seed), schedule.later, Faults(slow_ms=100), resurrects=resurrects)
        store.write_row(0, KEY, 1, b"one", ignore)
        store.write_row(0, KEY, 2, b"two", ignore)
        store.trim_row(0, KEY, 2, ignore)
        schedule.run()
        left.add(tuple(version for version, _ in store.versions(0, KEY)))
    assert left == ({(2,), (1, 2)} if resurrects else {(2,)})


def test_a_write_that_is_issued_after_a_removal_stands() -> None:
    schedule = Schedule()
    store = SimWideStore(Random(1), schedule.later)
    store.trim_entries(0, EntryRange(3, 0, 9), ignore)
    store.write_entry(0, 3, 5, b"five", ignore)
    schedule.run()
    assert store.entries(0, 3) == [(5, b"five")]


def write_and_look(seed: int) -> tuple[Failed | None, set[int], int]:
    """The answer to one write; how many versions were seen when it came; and how many there are in the end."""
    schedule = Schedule()
    faults = Faults(refuses=0.3, times_out=0.4, repeats=0.3, slow_ms=9, late_ms=50)
    store = SimWideStore(Random(seed), schedule.later, faults)
    answers: list[tuple[Failed | None, set[int]]] = []

    def done(answer: Failed | None) -> None:
        answers.append((answer, {len(store.versions(0, KEY)) for _ in range(8)}))

    store.write_row(0, KEY, 1, b"one", done)
    schedule.run()
    ((answer, seen),) = answers
    return answer, seen, len(store.versions(0, KEY))


def test_what_is_acknowledged_is_seen_from_then_on_and_what_is_refused_never() -> None:
    timed_out: set[tuple[int, int]] = set()
    for seed in range(300):
        answer, seen, finally_there = write_and_look(seed)
        if answer is None:
            assert (seen, finally_there) == ({1}, 1)
        elif answer == REFUSED:
            assert (seen, finally_there) == ({0}, 0)
        else:
            timed_out.update((here, finally_there) for here in seen)
    # Seen or not, and then there or not.
    assert timed_out == {(0, 0), (0, 1), (1, 0), (1, 1)}


def advance_all(seed: int) -> tuple[dict[int, int | Failed], int | Failed]:
    """The answers to some advances at once, and where the pointer stands in the end."""
    schedule = Schedule()
    store = SimWideStore(Random(seed), schedule.later, Faults(refuses=0.2, times_out=0.4, slow_ms=20, late_ms=90))
    answers: dict[int, int | Failed] = {}
    for upto in (3, 9, 6):
        store.advance(0, upto, partial(answers.__setitem__, upto))
    schedule.run()
    store.faults = Faults()
    store.read_pointer(0, partial(answers.__setitem__, 0))
    schedule.run()
    return answers, answers.pop(0)


def test_a_pointer_only_grows_and_its_answer_may_be_lost() -> None:
    lost_but_moved = 0
    for seed in range(100):
        answers, pointer = advance_all(seed)
        assert isinstance(pointer, int)
        for upto, answer in answers.items():
            assert isinstance(answer, Failed) or upto <= answer <= pointer
        lost_but_moved += pointer > 0 and isinstance(answers[pointer], Failed)
    assert lost_but_moved


def test_old_blocks_are_forgotten() -> None:
    store = SimWideStore(Random(1), lambda _, job: job())
    blocks = [NotesBlock(upto, upto - 1, 10 * upto, (b"%d" % upto,), frozenset()) for upto in (1, 2, 3)]
    for block in blocks:
        store.write_block(0, block, ignore)
    assert list(store.blocks(0, 2, 0)) == [blocks[1], blocks[0]]
    store.forget(0, 20)
    assert list(store.blocks(0, 9, 0)) == [blocks[2], blocks[1]]


def test_the_same_seed_is_the_same_weather() -> None:
    def weather(seed: int) -> list[object]:
        schedule = Schedule()
        store = SimWideStore(Random(seed), schedule.later, Faults(0.2, 0.2, 0.2, 20, 90, 5))
        answers: list[object] = []
        for version in range(1, 30):
            store.write_row(0, KEY, version, b"x", lambda answer: answers.append((schedule.now, answer)))
        schedule.run()
        return answers

    assert weather(5) == weather(5) != weather(6)
