from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.core.state import ShardState, encode_row
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.engine.ports import Checkpoint, saving
from nightmail.engine.saver import take_checkpoint
from nightmail.model.ids import SERVER
from nightmail.model.records import Record
from nightmail.model.rows import Kept, RowKey, queue_id
from nightmail.model.words import Lane
from sim.judges.shadow import Checkpoints, compare_with_replay
from sim.world.world import Broken, World
from tests.engine.rig import PHONE, START, TABLET, a_message, a_person

QUEUE = queue_id(TABLET, Lane.NORMAL)
SOON = 30
"""Tries after which chance has surely made each of a few choices."""


class Lived:
    """Two people, two messages that wait, one of them saved."""

    def __init__(self) -> None:
        log = MemoryLog()
        self.loop = Loop(log, MemoryRows(), lambda: START, lambda _: None)
        self.loop.recover()
        for record in (Record(SERVER, 1, a_person("alice")), Record(SERVER, 2, a_person("bob"))):
            self.submit(record)
        self.submit(Record(PHONE, 3, a_message(1, text="one")))
        self.state = self.loop.state
        self.saved = MemoryRows()
        self.saved.save(take_checkpoint(self.state, START), lambda _: None)
        self.submit(Record(PHONE, 4, a_message(2, text="two")))
        self.batches = list(log.replay(0))
        self.store = {QUEUE: [(1, encode_row(self.state.entries[QUEUE][1]))]}

    def submit(self, record: Record) -> None:
        self.loop.submit(record)
        self.loop.flush()

    def compare(self) -> None:
        """From the beginning, and from the checkpoint."""
        for rows in (MemoryRows(), self.saved):
            compare_with_replay(self.state, rows, self.batches, ShardState, self.store.get)

    def other(self, seq: int) -> None:
        entry = self.state.entries[QUEUE][seq]
        self.state.entries[QUEUE][seq] = replace(entry, ciphertext=b"another message")


@pytest.fixture
def lived() -> Lived:
    return Lived()


def test_what_is_in_memory_or_in_the_store_is_found_again_by_a_replay(lived: Lived) -> None:
    lived.compare()
    del lived.state.entries[QUEUE][1]
    lived.compare()


@pytest.mark.parametrize("seq", [1, 2])
def test_an_entry_with_another_ciphertext_is_told(lived: Lived, seq: int) -> None:
    lived.other(seq)
    with pytest.raises(Broken, match=f"as {seq}, live it is"):
        lived.compare()


def test_an_entry_that_is_neither_in_memory_nor_in_the_store_is_told(lived: Lived) -> None:
    del lived.state.entries[QUEUE][2]
    with pytest.raises(Broken, match=r"has \[1\] live, and \[1, 2\] wait"):
        lived.compare()


def test_a_store_that_has_another_entry_is_told(lived: Lived) -> None:
    lived.store[QUEUE] = [(1, encode_row(lived.state.entries[QUEUE][2]))]
    del lived.state.entries[QUEUE][1]
    with pytest.raises(Broken, match="as 1, live it is"):
        lived.compare()


def test_an_entry_that_does_not_wait_is_told(lived: Lived) -> None:
    lived.state.entries[QUEUE][3] = lived.state.entries[QUEUE][2]
    with pytest.raises(Broken, match="has nothing as 3"):
        lived.compare()


def test_a_checkpoint_without_an_entry_is_told_although_the_live_state_has_it(lived: Lived) -> None:
    del lived.saved.entries[QUEUE, 1]
    with pytest.raises(Broken, match=r"has \[2\] after a replay, and \[1, 2\] wait"):
        lived.compare()


# --- checkpoints of several owners ------------------------------------------------------------


def a_checkpoint(upto: int) -> Checkpoint:
    return Checkpoint(upto, START, rows=[saving(RowKey(Kept.MAILBOX, 1), upto, b"%d" % upto)])


def test_any_checkpoint_can_be_stood_upon_if_it_follows_on_what_stood() -> None:
    checkpoints = Checkpoints(World(1))
    for base, upto in ((0, 10), (0, 15), (10, 20), (20, 30), (31, 40), (10, 10)):
        checkpoints.take(base, a_checkpoint(upto))
    stood = {rows.pointer: rows.rows for rows in (checkpoints.some(30) for _ in range(10 * SOON))}
    assert sorted(stood) == [0, 10, 15, 20, 30]
    assert stood[15] == {RowKey(Kept.MAILBOX, 1): b"15"}


def test_nothing_newer_than_the_live_state_is_stood_upon() -> None:
    checkpoints = Checkpoints(World(1))
    checkpoints.take(0, a_checkpoint(10))
    assert {checkpoints.some(9).pointer for _ in range(SOON)} == {0}
