from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from nightmail.engine.cluster.store import WideStore
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, EntryRange, Failed, Overtaken, RowKey, saving
from nightmail.model.rows import Kept
from sim.faults.wide_store import Faults, SimWideStore
from sim.runs.owners import DEVICE, EVERYTHING, LENGTH, History
from tests.engine.cluster.patient import PatientRows, at_once

SHARD, BOX, OTHER = RowKey(Kept.SHARD, 0), RowKey(Kept.MAILBOX, 1), RowKey(Kept.MAILBOX, 2)
LOST = Failed("the answer was lost")


class Store:
    """A calm store that notes what it is asked, and holds or loses the answers that it is told to."""

    def __init__(self) -> None:
        self.real = SimWideStore(Random(1), at_once)
        self.at_once = self.real.at_once
        self.asked: list[str] = []
        self.refused: set[str] = set()
        """Not done, and answered Failed."""
        self.lost: set[str] = set()
        """Done, and answered Failed."""
        self.held: set[str] = set()
        """Done, and answered when released."""
        self.answers: list[Callable[[], None]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def operate(*arguments: Any) -> Any:
            self.asked.append(name)
            *given, done = arguments
            if name in self.refused:
                done(LOST)
            elif name in self.lost:
                getattr(self.real, name)(*given, lambda _: done(LOST))
            elif name in self.held:
                getattr(self.real, name)(*given, lambda answer: self.answers.append(lambda: done(answer)))
            else:
                return getattr(self.real, name)(*arguments)
            return None

        return operate

    def release(self) -> None:
        self.held.clear()
        answers, self.answers = self.answers, []
        for answer in answers:
            answer()


@pytest.fixture
def store() -> Store:
    return Store()


def open_rows(store: Store) -> WideRows:
    opened: list[WideRows | Failed] = []
    WideRows.open(cast("WideStore", store), 0, opened.append)
    (rows,) = opened
    assert isinstance(rows, WideRows)
    return rows


def save(rows: WideRows, checkpoint: Checkpoint) -> object:
    outcomes: list[object] = []
    rows.save(checkpoint, outcomes.append)
    (outcome,) = outcomes
    return outcome


def load(rows: WideRows, *needs: RowKey | EntryRange) -> object:
    found: list[object] = []
    rows.load(needs, found.append)
    (answer,) = found
    return answer


def shard_at(upto: int, **more: Any) -> Checkpoint:
    return Checkpoint(upto, upto, rows=[saving(SHARD, upto, b"%d" % upto)], **more)


# --- opening ----------------------------------------------------------------------------------


def test_rows_open_where_the_pointer_stands(store: Store) -> None:
    save(open_rows(store), shard_at(4))
    assert open_rows(store).pointer == 4


def test_rows_do_not_open_when_the_pointer_cannot_be_read(store: Store) -> None:
    store.refused = {"read_pointer"}
    opened: list[WideRows | Failed] = []
    WideRows.open(cast("WideStore", store), 0, opened.append)
    assert opened == [LOST]


def test_shards_do_not_see_each_other(store: Store) -> None:
    one, two = WideRows(cast("WideStore", store), 1, 0), WideRows(cast("WideStore", store), 2, 0)
    save(one, shard_at(4, entries=[(3, 1, b"e")]))
    assert load(two, SHARD, EntryRange(3, 0, 9)) == [None, []]


# --- saving -----------------------------------------------------------------------------------


def test_a_checkpoint_is_written_then_pointed_to_then_trimmed(store: Store) -> None:
    rows = open_rows(store)
    store.asked.clear()
    save(rows, shard_at(9, entries=[(3, 5, b"e")], cleared=[(3, 4)], dropped=[(3, 7)]))
    writes, trims = ["write_block", "write_row", "write_entry"], ["trim_row", "trim_entries", "trim_entries"]
    assert store.asked == [*writes, "advance", *trims]


@pytest.mark.parametrize("write", ["write_block", "write_row", "write_entry"])
def test_the_pointer_waits_for_every_write(store: Store, write: str) -> None:
    rows = open_rows(store)
    checkpoint = shard_at(9, entries=[(3, 5, b"e")])
    store.refused = {write}
    assert (save(rows, checkpoint), rows.pointer) == (LOST, 0)
    assert "advance" not in store.asked
    store.refused, store.held = set(), {write}
    outcomes: list[object] = []
    rows.save(checkpoint, outcomes.append)
    assert (outcomes, "advance" in store.asked) == ([], False)
    store.release()
    assert (outcomes, rows.pointer) == ([None], 9)


def test_a_pointer_that_moved_without_our_knowing_is_no_trouble(store: Store) -> None:
    rows = open_rows(store)
    store.lost = {"advance"}
    assert (save(rows, shard_at(4)), rows.pointer) == (LOST, 0)
    store.lost = set()
    assert (save(rows, shard_at(4)), rows.pointer) == (None, 4)


def test_an_owner_that_is_behind_learns_where_the_pointer_stands(store: Store) -> None:
    slow, quick = open_rows(store), open_rows(store)
    save(quick, shard_at(7))
    assert (save(slow, shard_at(5)), slow.pointer) == (Overtaken(7), 7)
    assert load(slow, SHARD) == [b"7"]


def test_an_owner_that_is_ahead_may_save_on_an_older_checkpoint(store: Store) -> None:
    """Everything that changed since its own last checkpoint is in it, whatever the other one saved in between."""
    one, two = open_rows(store), open_rows(store)
    save(one, Checkpoint(5, 5, rows=[saving(BOX, 5, b"five"), saving(OTHER, 2, b"two")]))
    assert save(two, Checkpoint(8, 8, rows=[saving(BOX, 7, b"seven"), saving(OTHER, 2, b"two")])) is None
    assert load(two, BOX, OTHER) == [b"seven", b"two"]
    assert load(one, BOX) == Overtaken(8)


def test_two_owners_may_save_the_same_checkpoint(store: Store) -> None:
    one, two = open_rows(store), open_rows(store)
    assert [save(one, shard_at(5)), save(two, shard_at(5))] == [None, None]
    assert load(one, SHARD) == load(two, SHARD) == [b"5"]


def test_a_checkpoint_that_is_behind_is_not_even_written(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(5))
    store.asked.clear()
    assert (save(rows, shard_at(4)), store.asked) == (Overtaken(5), [])


def test_thousands_of_rows_are_written_some_at_a_time(store: Store) -> None:
    rows = open_rows(store)
    many = Checkpoint(1, 1, rows=[saving(RowKey(Kept.MAILBOX, a), 1, b"x") for a in range(5_000)])
    store.held = {"write_row", "write_block"}
    outcomes: list[object] = []
    rows.save(many, outcomes.append)
    assert len(store.answers) == store.at_once
    store.release()
    assert (outcomes, Counter(store.asked)["write_row"]) == ([None], 5_000)


# --- trimming ---------------------------------------------------------------------------------


def test_nobody_waits_for_a_trim(store: Store) -> None:
    rows = open_rows(store)
    store.held = {"trim_row", "trim_entries"}
    assert save(rows, shard_at(1, cleared=[(3, 4)])) is None
    assert save(rows, shard_at(2)) is None
    assert rows.owing == 2
    store.release()
    assert rows.owing == 0


def test_what_nobody_can_read_any_more_is_removed(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(1, entries=[(3, seq, b"e") for seq in range(1, 6)]))
    save(rows, shard_at(2, cleared=[(3, 2)], dropped=[(3, 4)]))
    assert store.real.versions(0, SHARD) == [(2, b"2")]
    assert [seq for seq, _ in store.real.entries(0, 3)] == [3, 5]


def test_a_trim_that_failed_is_done_with_the_next_checkpoint(store: Store) -> None:
    rows = open_rows(store)
    save(rows, Checkpoint(1, 1, rows=[saving(BOX, 1, b"one")], entries=[(3, 1, b"e")]))
    store.refused = {"trim_row", "trim_entries"}
    assert save(rows, Checkpoint(2, 2, rows=[saving(BOX, 2, b"two")], cleared=[(3, 1)])) is None
    assert (len(store.real.versions(0, BOX)), len(store.real.entries(0, 3))) == (2, 1)
    store.refused = set()
    save(rows, shard_at(3))
    assert (len(store.real.versions(0, BOX)), len(store.real.entries(0, 3)), rows.owing) == (1, 0, 0)


def test_a_tombstone_stays_so_that_an_older_version_may_come_back(store: Store) -> None:
    rows = open_rows(store)
    save(rows, Checkpoint(1, 1, rows=[saving(BOX, 1, b"one")]))
    save(rows, Checkpoint(2, 2, rows=[saving(BOX, 2, None)]))
    assert store.real.versions(0, BOX) == [(2, None)]
    store.real.write_row(0, BOX, 1, b"one", lambda _: None)
    assert load(rows, BOX) == [None]


def test_what_did_not_become_the_pointer_trims_nothing(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(1, entries=[(3, 1, b"e")]))
    store.refused = {"advance"}
    save(rows, shard_at(2, cleared=[(3, 1)]))
    assert load(rows, SHARD, EntryRange(3, 1, 1)) == [b"1", [(1, b"e")]]


# --- loading ----------------------------------------------------------------------------------


def test_what_is_above_the_pointer_is_not_seen(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(3))
    store.refused = {"advance"}
    save(rows, shard_at(6))
    assert [version for version, _ in store.real.versions(0, SHARD)] == [3, 6]
    assert load(rows, SHARD) == [b"3"]


def test_an_owner_that_was_overtaken_is_told_so_and_not_that_the_row_is_gone(store: Store) -> None:
    zombie = open_rows(store)
    save(zombie, shard_at(3))
    save(open_rows(store), shard_at(6))
    assert (load(zombie, SHARD), zombie.pointer) == (Overtaken(6), 6)
    assert load(zombie, SHARD) == [b"6"]


@pytest.mark.parametrize("read", ["read_row", "read_entries", "read_pointer"])
def test_a_read_that_fails_says_nothing_about_the_row(store: Store, read: str) -> None:
    rows = open_rows(store)
    store.refused = {read}
    assert load(rows, SHARD, EntryRange(3, 1, 9)) == LOST


def test_a_load_that_our_own_save_overtakes_begins_again(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(1))
    store.held = {"read_row"}
    found: list[object] = []
    rows.load([SHARD], found.append)
    save(rows, shard_at(2))
    store.release()
    assert found == [[b"2"]]


def test_a_load_that_sees_our_own_pointer_first_waits_for_its_save(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(1))
    store.held = {"advance"}
    outcomes: list[object] = []
    found: list[object] = []
    rows.save(shard_at(2), outcomes.append)
    rows.load([SHARD], found.append)
    assert (outcomes, found, rows.pointer) == ([], [], 1)
    store.release()
    assert (outcomes, found, rows.pointer) == ([None], [[b"2"]], 2)


def test_a_load_does_not_wait_for_ever_for_a_save_whose_answer_was_lost(store: Store) -> None:
    rows = open_rows(store)
    save(rows, shard_at(1))
    store.lost = {"advance"}
    assert save(rows, shard_at(2)) == LOST
    assert (load(rows, SHARD), rows.pointer) == (Overtaken(2), 2)


def test_what_was_asked_before_we_were_overtaken_is_not_answered_from_after_it(store: Store) -> None:
    rows = open_rows(store)
    store.held = {"read_row"}
    found: list[object] = []
    rows.load([SHARD], found.append)
    save(open_rows(store), shard_at(6))
    assert load(rows, EntryRange(3, 1, 9)) == Overtaken(6)
    store.release()
    assert found == [Overtaken(6)]


# --- the delivery log -------------------------------------------------------------------------


def noted(upto: int, notes: bytes) -> Checkpoint:
    return Checkpoint(upto, upto, notes=[notes], noted=frozenset((1,)))


def test_the_delivery_log_tells_each_record_once_however_owners_cut_it(store: Store) -> None:
    one = open_rows(store)
    save(one, noted(2, b"1-2."))
    two = open_rows(store)
    save(two, noted(4, b"3-4."))
    save(one, noted(5, b"3-5."))
    store.refused = {"advance"}
    save(one, noted(7, b"6-7."))
    store.refused = set()
    last = open_rows(store)
    save(last, Checkpoint(6, 6))
    save(last, noted(9, b"7-9."))
    assert b"".join(last.recall((1,), 0)) == b"1-2.3-5.7-9."
    assert list(last.recall((2,), 0)) == []


# --- against the model ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_in_bad_weather_it_does_what_the_model_does(seed: int) -> None:
    chance = Random(seed)
    history = History(chance)
    model, rows = MemoryRows(), PatientRows(seed, Faults(0.1, 0.1, 0.2, slow_ms=20, late_ms=200))
    base = 0
    while base < LENGTH:
        upto = min(LENGTH, base + chance.randint(1, 6))
        checkpoint = history.checkpoint(base, upto, 0)
        outcomes: list[object] = []
        found: list[object] = []
        for each in (model, rows):
            each.save(checkpoint, outcomes.append)
            each.load(EVERYTHING, found.append)
        assert outcomes == [None, None]
        assert found[0] == found[1]
        assert list(rows.recall((DEVICE,), upto - 5)) == list(model.recall((DEVICE,), upto - 5))
        base = upto
