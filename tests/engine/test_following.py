"""A log that others append to, too: only the next batch is taken, and whoever falls behind begins anew."""

from __future__ import annotations

from nightmail.engine.memory import MemoryLog
from nightmail.engine.ports import Overtaken, Stored
from nightmail.model.records import Record, encode_record
from nightmail.model.refusals import Unavailable
from tests.engine.rig import BOB, PHONE, SELDOM, START, HeldLog, Rig, a_message, started


def a_batch(first: int, *numbers: int, at: int = START) -> Stored:
    return Stored(first, at, [encode_record(Record(PHONE, 0, a_message(n))) for n in numbers])


def test_only_the_next_batch_is_taken_from_whoever_follows_the_log() -> None:
    rig = started()
    assert rig.loop.next_offset == 3
    rig.loop.feed(a_batch(4, 2))  # too early
    rig.loop.feed(a_batch(3, 1, 2))
    rig.loop.feed(a_batch(3, 1, 2))  # again
    assert (rig.loop.next_offset, rig.texts()) == (5, ["hello"] * 2)
    rig.loop.feed(a_batch(4, 2, 3))  # partly known
    assert (rig.loop.next_offset, rig.texts()) == (6, ["hello"] * 3)


def test_one_that_fell_behind_starts_again_from_the_newer_checkpoint() -> None:
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n))
    rig.loop.save(at_once=True)
    behind = Rig(HeldLog(), rig.rows)
    behind.log.stored = MemoryLog()
    behind.loop.recover()
    behind.loop.fell_behind()
    assert not behind.loop.ready
    assert behind.answers(behind.say(PHONE, a_message(9))) == [Unavailable()]
    behind.wait(1)
    assert (behind.loop.ready, behind.loop.next_offset, behind.texts()) == (True, 6, ["hello"] * 3)


def test_a_checkpoint_that_was_overtaken_is_dropped_and_the_state_is_rebuilt() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.rows.answer_save(Overtaken(9))
    assert (rig.loop.ready, rig.saved) == (False, [])
    rig.wait(1)
    assert (rig.loop.ready, rig.saved, rig.texts()) == (True, [], ["hello"])


def test_nothing_is_rebuilt_while_a_save_may_still_move_the_pointer() -> None:
    rig = started(SELDOM)
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.loop.fell_behind()
    rig.wait(1)
    assert not rig.loop.ready
    rig.rows.answer_save()
    rig.wait(1)
    assert (rig.loop.ready, rig.loop.next_offset, [saved.upto for saved in rig.saved]) == (True, 3, [2])


def test_what_becomes_durable_while_it_recovers_is_folded_behind_it() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    again = Rig(rig.log, rig.rows)
    again.rows.holds_loads = True
    again.loop.recover()
    again.loop.feed(a_batch(4, 2))
    again.rows.holds_loads = False
    again.rows.answer_load()
    assert (again.loop.ready, again.texts()) == (True, ["hello"] * 2)
    assert (again.loop.next_offset, BOB in again.loop.state.accounts) == (5, True)
