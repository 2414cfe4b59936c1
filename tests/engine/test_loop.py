"""The loop: only what is durable is folded, and what the world does decides nothing."""

from __future__ import annotations

import struct

import pytest

from nightmail.core.state import COMING_FOLD, NEWEST_FOLD, ShardState, encode_row
from nightmail.core.step import FOLDS
from nightmail.core.tracing import decode_notes
from nightmail.engine.loop import FORGET_MS, QUIET_MS, REPEAT_MS, TRIM_MS, TRIM_TIGHT_MS, LoopLimits
from nightmail.engine.ports import Checkpoint, TooNew, saving
from nightmail.engine.saver import SaverLimits
from nightmail.model.answers import Accepted, Done, Joined
from nightmail.model.effects import Answer, Grew
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.notes import ConnectionChanged
from nightmail.model.records import (
    Acked,
    FoldRaised,
    GroupVoided,
    ReceiptsAcked,
    Record,
    decode_record,
    encode_record,
)
from nightmail.model.refusals import DiskFull, NotYet, Overloaded, Unavailable
from nightmail.model.rows import Kept, RowKey, Shard
from nightmail.model.words import Lane
from tests.engine.rig import PHONE, SELDOM, START, TABLET, HeldRows, Rig, a_message, a_person, restarted, started

NORMAL = Lane.NORMAL


def accepted(n: int, at: int = START, text: str = "hello") -> Accepted:
    message = a_message(n, text=text)
    return Accepted(message.id, message.tag, at, 1)


# --- appending and folding --------------------------------------------------------------------


def test_what_is_submitted_is_durable_then_folded_then_answered() -> None:
    rig = started()
    via = rig.say(PHONE, a_message())
    assert rig.effects == [Grew(TABLET, NORMAL), Answer(via, accepted(1))]
    assert [decode_record(data) for _, batch in rig.log.batches for data in batch] == [Record(PHONE, via, a_message())]
    assert (rig.texts(), rig.loop.idle) == (["hello"], True)


def test_nothing_is_folded_before_it_is_durable() -> None:
    rig = started()
    rig.log.holds = True
    before = rig.everything()
    via = rig.say(PHONE, a_message())
    assert (rig.effects, rig.everything(), rig.loop.state.offset) == ([], before, 2)
    assert not rig.loop.idle
    rig.log.succeed()
    assert rig.answers(via) == [accepted(1)]


def test_the_next_batch_is_on_its_way_before_the_last_one_is_folded() -> None:
    rig = started()
    rig.log.holds, under_way = True, list[int]()
    first, second, third = (rig.say(PHONE, a_message(n)) for n in (1, 2, 3))
    assert len(rig.log.batches) == 1
    rig.meanwhile = lambda: under_way.append(len(rig.log.held[1]) if rig.log.held else 0)
    rig.log.succeed()
    assert (under_way, rig.answers(first), rig.answers(second)) == ([2], [accepted(1)], [])
    rig.log.succeed()
    assert (under_way, rig.answers(second), rig.answers(third)) == (
        [2, 0],
        [accepted(2, START + 1)],
        [accepted(3, START + 2)],
    )


def test_what_arrives_during_one_append_is_the_next_batch() -> None:
    rig = started()
    rig.log.holds = True
    for n in range(1, 6):
        rig.say(PHONE, a_message(n))
    rig.log.succeed()
    assert [len(batch) for _, batch in rig.log.batches] == [1, 4]


def test_a_record_that_has_no_bytes_leaves_those_of_others_in_their_places() -> None:
    rig = started()
    with pytest.raises(struct.error):
        rig.loop.submit(Record(-1, 0, a_message()))
    with pytest.raises(struct.error):
        rig.loop.submit_all([Record(-1, 0, a_message())])
    via = rig.say(PHONE, a_message())
    assert rig.effects == [Grew(TABLET, NORMAL), Answer(via, accepted(1))]
    assert [decode_record(data) for _, batch in rig.log.batches for data in batch] == [Record(PHONE, via, a_message())]


def test_a_batch_holds_no_more_records_than_its_limit() -> None:
    rig = started(LoopLimits(batch_records=3))
    for n in range(1, 9):
        rig.submit(PHONE, a_message(n))
    rig.loop.flush()
    assert [len(batch) for _, batch in rig.log.batches] == [3, 3, 2]
    assert rig.texts() == ["hello"] * 8


def test_a_batch_holds_no_more_bytes_than_the_limit_of_the_loop_or_of_the_log() -> None:
    size = len(encode_record(Record(PHONE, 1, a_message()))) + 4
    for limits, log_max in ((LoopLimits(batch_bytes=2 * size), 1 << 40), (LoopLimits(), 2 * size)):
        rig = started(limits)
        rig.log.batch_bytes_max = log_max
        for n in range(1, 6):
            rig.submit(PHONE, a_message(n))
        rig.loop.flush()
        assert [len(batch) for _, batch in rig.log.batches] == [2, 2, 1]


def test_a_record_larger_than_the_limit_goes_alone() -> None:
    rig = started(LoopLimits(batch_bytes=500))
    for n, text in enumerate(("short", "long" * 500, "short"), 1):
        rig.submit(PHONE, a_message(n, text=text))
    rig.loop.flush()
    assert [len(batch) for _, batch in rig.log.batches] == [1, 1, 1]


def sizes(rig: Rig) -> list[int]:
    return [len(batch) for _, batch in rig.log.batches]


def test_after_a_quiet_moment_a_small_batch_goes_at_once_and_the_next_one_lingers_for_company() -> None:
    rig = started(lingers=True)
    rig.pace += QUIET_MS
    rig.say(PHONE, a_message(1))
    assert sizes(rig) == [1]
    rig.say(PHONE, a_message(2))
    rig.say(PHONE, a_message(3))
    assert sizes(rig) == [1]
    (lingered,) = rig.lingering
    lingered()
    assert sizes(rig) == [1, 2]
    rig.pace += QUIET_MS
    rig.say(PHONE, a_message(4))
    assert sizes(rig) == [1, 2, 1]


def test_a_batch_that_is_not_small_does_not_linger() -> None:
    for limits in (LoopLimits(linger_records=2), LoopLimits(batch_records=2)):
        rig = started(limits, lingers=True)
        rig.pace += QUIET_MS
        rig.say(PHONE, a_message(1))
        rig.say(PHONE, a_message(2))
        assert sizes(rig) == [1]
        rig.say(PHONE, a_message(3))
        assert sizes(rig) == [1, 2]
        for lingered in rig.lingering:
            lingered()
        assert sizes(rig) == [1, 2]


def test_what_is_lingered_for_may_be_nothing() -> None:
    rig = started(LoopLimits(linger_ms=0), lingers=True)
    for n in range(1, 4):
        rig.say(PHONE, a_message(n))
    assert (sizes(rig), rig.lingering) == ([1, 1, 1], [])


def test_a_batch_is_stamped_when_it_leaves_and_time_never_runs_backward() -> None:
    rig = started()
    rig.clock = START + 500
    rig.say(PHONE, a_message(1))
    rig.clock = START - 9_000
    rig.say(PHONE, a_message(2))
    assert [at for at, _ in rig.log.batches] == [START + 500, START + 500]


def test_bytes_that_came_over_the_wire_are_logged_as_they_are() -> None:
    rig = started()
    record = Record(PHONE, 9, a_message())
    data = encode_record(record)
    rig.loop.submit(record, data)
    rig.loop.flush()
    assert rig.log.batches[0][1][0] is data


# --- appends that fail ------------------------------------------------------------------------


def test_a_failed_append_makes_its_batch_and_all_waiting_ones_unavailable() -> None:
    rig = started()
    rig.log.holds = True
    vias = [rig.say(PHONE, a_message(n)) for n in (1, 2, 3)]
    silent = Record(TABLET, 0, Acked(NORMAL, 0))
    rig.loop.submit(silent)
    rig.log.fail()
    assert rig.effects == [Answer(via, Unavailable()) for via in vias]
    assert (rig.log.held, rig.loop.idle, rig.texts()) == (None, True, [])


def test_an_ack_that_wants_no_answer_is_written_down_again_the_newest_of_each_queue() -> None:
    """Whoever says it believes that it was heard, and would say no more."""
    rig = started()
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n, text=f"m{n}"))
    rig.log.holds = True
    for body in (Acked(NORMAL, 2), Acked(NORMAL, 1), ReceiptsAcked(0)):
        rig.loop.submit(Record(TABLET, 0, body))
    rig.loop.flush()
    rig.log.fail()
    rig.log.holds = False
    rig.wait(REPEAT_MS - 1)
    assert rig.texts() == ["m1", "m2", "m3"]
    rig.wait(1)
    assert rig.texts() == ["m3"]
    assert len(rig.log.batches[-1][1]) == 2


def test_what_failed_is_taken_once_when_it_is_tried_again() -> None:
    rig = started()
    rig.log.holds = True
    lost = [rig.say(PHONE, a_message(n)) for n in (1, 2)]
    rig.log.fail()
    rig.log.holds = False
    again = [rig.say(PHONE, a_message(n)) for n in (1, 2)]
    assert [rig.answers(via) for via in lost] == [[Unavailable()], [Unavailable()]]
    assert [rig.answers(via) for via in again] == [[accepted(1)], [accepted(2, START + 1)]]
    assert rig.texts() == ["hello", "hello"]


def test_what_failed_and_was_kept_all_the_same_is_taken_once_after_a_restart() -> None:
    rig = started()
    rig.log.holds = True
    rig.say(PHONE, a_message(1))
    rig.log.fail(kept=True)
    rig.log.holds = False
    rig = restarted(rig)
    assert (rig.effects, rig.texts()) == ([], ["hello"])
    assert rig.answers(rig.say(PHONE, a_message(1))) == [accepted(1)]
    assert rig.texts() == ["hello"]


# --- refusals of the moment -------------------------------------------------------------------


def test_a_full_disk_refuses_sends_and_takes_acknowledgements() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.log.tight = True
    sent, joined = rig.say(PHONE, a_message(2)), rig.say(SERVER, a_person("carol"))
    acked, heard = rig.say(TABLET, Acked(NORMAL, 1)), rig.say(PHONE, ReceiptsAcked(1))
    assert (rig.answers(sent), rig.answers(joined)) == ([DiskFull()], [DiskFull()])
    assert (rig.answers(acked), rig.answers(heard), rig.texts()) == ([Done()], [Done()], [])
    rig.log.tight = False
    assert rig.answers(rig.say(PHONE, a_message(2))) == [accepted(2, START + 1)]


def test_connections_alone_fill_no_memory_and_are_saved_with_the_next_record() -> None:
    rig = started(LoopLimits(saver=SaverLimits(checkpoint_notes=3, checkpoint_ms=100)))
    rig.loop.save(at_once=True)
    for _ in range(5):
        rig.loop.note_connection(TABLET, here=True)
        rig.loop.save(at_once=True)
    assert rig.loop.state.notes == [ConnectionChanged(rig.clock, TABLET, True)] * 3
    rig.say(PHONE, a_message(1))
    rig.loop.save(at_once=True)
    (piece,) = rig.rows.recall((TABLET,), 0)
    assert decode_notes(piece)[:3] == [ConnectionChanged(rig.clock, TABLET, True)] * 3


def test_too_much_unsaved_refuses_sends_and_takes_acknowledgements() -> None:
    rig = started(LoopLimits(unsaved_rows=8, saver=SaverLimits(checkpoint_ms=100)))
    rig.rows.holds_saves = True
    rig.wait(100)
    assert len(rig.rows.saves) == 1
    said: list[object] = []
    for n in range(1, 6):
        said += rig.answers(rig.say(PHONE, a_message(n)))
    assert said[-1] == Overloaded()
    taken = sum(isinstance(answer, Accepted) for answer in said)
    assert rig.answers(rig.say(TABLET, Acked(NORMAL, taken))) == [Done()]
    rig.rows.holds_saves = False
    rig.rows.answer_save()
    rig.wait(100)
    assert isinstance(rig.answers(rig.say(PHONE, a_message(taken + 1)))[0], Accepted)


def test_too_many_unsaved_bytes_refuse_sends_and_take_acknowledgements() -> None:
    rig = started(LoopLimits(unsaved_bytes=250, saver=SaverLimits(checkpoint_bytes=100, checkpoint_ms=10**9)))
    rig.rows.holds_saves = True
    said: list[object] = []
    for n in range(1, 6):
        said += rig.answers(rig.say(PHONE, a_message(n, text="x" * 100)))
        rig.wait(1)
    taken = sum(isinstance(answer, Accepted) for answer in said)
    assert (0 < taken < 5, said[-1], len(rig.rows.saves)) == (True, Overloaded(), 1)
    assert rig.answers(rig.say(TABLET, Acked(NORMAL, taken))) == [Done()]
    rig.rows.holds_saves = False
    rig.rows.answer_save()
    rig.wait(1)
    assert (rig.loop.unsaved_bytes, rig.loop.overloaded) == (0, False)
    assert isinstance(rig.answers(rig.say(PHONE, a_message(taken + 1)))[0], Accepted)


def test_before_it_is_ready_everything_is_unavailable() -> None:
    rig = Rig()
    assert not rig.loop.ready
    assert rig.answers(rig.say(PHONE, a_message())) == [Unavailable()]
    assert rig.answers(rig.say(TABLET, Acked(NORMAL, 1))) == [Unavailable()]
    assert rig.log.batches == []


def test_whoever_wants_no_answer_gets_none() -> None:
    rig = Rig()
    rig.loop.submit(Record(PHONE, 0, a_message()))
    assert rig.effects == []


def test_a_retry_is_answered_from_memory_and_not_logged_again() -> None:
    rig = started()
    rig.say(PHONE, a_message())
    rig.log.batches.clear()
    rig.log.tight = True  # Not even then: it costs nothing.
    via = rig.say(PHONE, a_message())
    assert (rig.answers(via), rig.log.batches, rig.texts()) == ([accepted(1)], [], ["hello"])


def test_a_retry_of_what_is_not_durable_yet_waits_for_it() -> None:
    rig = started()
    rig.log.holds = True
    first, again = rig.say(PHONE, a_message()), rig.say(PHONE, a_message())
    assert rig.effects == []
    rig.log.succeed()
    rig.log.succeed()
    assert (rig.answers(first), rig.answers(again), rig.texts()) == ([accepted(1)], [accepted(1)], ["hello"])


# --- time -------------------------------------------------------------------------------------


def test_a_checkpoint_is_taken_when_it_is_time_and_only_if_something_happened() -> None:
    rig = started()
    rig.wait(10_000)
    assert [checkpoint.upto for checkpoint in rig.saved] == [2]
    rig.wait(15_000)
    assert [checkpoint.upto for checkpoint in rig.saved] == [2]
    rig.say(PHONE, a_message())
    rig.wait(9_999)
    assert [checkpoint.upto for checkpoint in rig.saved] == [2]
    rig.wait(1)
    assert ([checkpoint.upto for checkpoint in rig.saved], rig.rows.pointer) == ([2, 3], 3)


def test_a_checkpoint_is_taken_at_once_when_asked() -> None:
    rig = started(SELDOM)
    rig.loop.save()
    assert rig.saved == []
    rig.loop.save(at_once=True)
    assert [checkpoint.upto for checkpoint in rig.saved] == [2]
    rig.loop.save(at_once=True)
    assert len(rig.saved) == 1


def test_the_log_is_trimmed_after_each_checkpoint_and_ages_when_nothing_happens() -> None:
    rig = started()
    rig.wait(10_000)
    assert rig.log.trims == [(2, START + 10_000)]
    rig.wait(TRIM_MS - 1)
    assert len(rig.log.trims) == 1
    rig.wait(1)
    assert rig.log.trims[1:] == [(2, START + 10_000 + TRIM_MS)]


def test_the_log_is_trimmed_no_further_than_what_is_saved() -> None:
    rig = started()
    rig.rows.holds_saves = True
    rig.wait(10_000)
    rig.wait(TRIM_MS)
    assert {upto for upto, _ in rig.log.trims} == {0}


def test_a_disk_that_fails_is_not_called_full() -> None:
    rig = started(SELDOM)
    rig.log.tight, rig.log.is_full = True, False
    assert rig.answers(rig.say(PHONE, a_message(1))) == [Unavailable()]


def test_while_space_is_tight_it_is_looked_for_more_often() -> None:
    rig = started()
    rig.wait(10_000)
    rig.log.tight = True
    rig.wait(TRIM_TIGHT_MS - 1)
    assert len(rig.log.trims) == 1
    rig.wait(1)
    rig.wait(TRIM_TIGHT_MS)
    assert len(rig.log.trims) == 3


def test_the_delivery_log_forgets_every_hour() -> None:
    rig = started(LoopLimits(notes_ms=DAY_MS))
    rig.wait(1)
    assert rig.rows.forgotten == []
    rig.wait(FORGET_MS)
    rig.wait(FORGET_MS - 1)
    assert rig.rows.forgotten == [START + 1 + FORGET_MS - DAY_MS]
    rig.wait(1)
    assert len(rig.rows.forgotten) == 2


# --- recovery ---------------------------------------------------------------------------------


@pytest.mark.parametrize("saved", [False, True])
def test_a_restart_has_everything_and_announces_nothing(saved: bool) -> None:
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n))
        if saved and n == 2:
            rig.loop.save(at_once=True)
    again = restarted(rig)
    assert (again.loop.ready, again.effects, again.texts()) == (True, [], ["hello"] * 3)
    assert again.everything() == rig.everything()
    via = again.say(PHONE, a_message(4))
    assert again.answers(via) == [accepted(4, START + 3)]


def test_a_restart_may_announce_what_others_might_not_have_heard() -> None:
    rig = started(SELDOM)
    first, second = rig.say(PHONE, a_message(1)), rig.say(PHONE, a_message(2))
    heard = [effect for effect in rig.effects if effect != Answer(first, accepted(1))][1:]
    again = restarted(rig, announce_after=3)
    assert again.effects == heard == [Grew(TABLET, NORMAL), Answer(second, accepted(2, START + 1))]
    everything = restarted(rig, announce_after=0)
    assert everything.effects[2:] == rig.effects
    assert [type(effect.said) for effect in everything.effects[:2] if isinstance(effect, Answer)] == [Joined, Joined]


def test_a_checkpoint_of_a_newer_fold_stops_it_and_nothing_is_taken() -> None:
    rows = HeldRows()
    rows.save(Checkpoint(0, 0, rows=[saving(RowKey(Kept.SHARD, 0), 0, encode_row(Shard(fold=NEWEST_FOLD + 1)))]), print)
    rig = Rig(rows=rows)
    rig.loop.recover()
    assert isinstance(rig.loop.stopped, TooNew)
    assert f"version {NEWEST_FOLD + 1} says; this program knows up to {NEWEST_FOLD}" in str(rig.loop.stopped)
    assert rig.answers(rig.say(PHONE, a_message())) == [Unavailable()]
    rig.wait(10_000)
    assert (rig.log.batches, len(rig.rows.given), rig.loop.ready) == ([], 1, False)


def test_a_record_of_a_newer_fold_stops_it_before_anything_behind_it() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.submit(SERVER, FoldRaised(NEWEST_FOLD + 1))
    behind = rig.submit(PHONE, a_message(2))
    rig.loop.flush()
    assert rig.loop.stopped is not None
    assert (rig.loop.ready, rig.loop.caught_up, rig.answers(behind)) == (False, False, [])
    assert rig.answers(rig.say(PHONE, a_message(3))) == [Unavailable()]
    rig.loop.save(at_once=True)
    assert rig.saved == []
    assert (restarted(rig).loop.ready, rig.poisoned) == (False, [])


def test_a_program_that_knows_the_fold_goes_on_where_an_older_one_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = started(SELDOM)
    rig.submit(SERVER, FoldRaised(NEWEST_FOLD + 1))
    rig.say(PHONE, a_message(1))
    assert rig.loop.stopped
    monkeypatch.setitem(FOLDS, NEWEST_FOLD + 1, FOLDS[NEWEST_FOLD])
    newer = Rig(rig.log, rig.rows, new_state=lambda: ShardState(newest_fold=NEWEST_FOLD + 1))
    newer.loop.recover()
    assert (newer.loop.ready, newer.loop.state.shard.fold, newer.texts()) == (True, NEWEST_FOLD + 1, ["hello"])


# --- what is not taken yet --------------------------------------------------------------------


@pytest.mark.parametrize("newest", [NEWEST_FOLD, COMING_FOLD])
def test_a_record_of_a_later_fold_is_answered_not_yet_and_never_appended(newest: int) -> None:
    rig = Rig(new_state=lambda: ShardState(newest_fold=newest))
    rig.loop.recover()
    while not rig.loop.adopt(GroupVoided.since - 1, FoldLimits()):
        pass
    before, later = rig.log.last, GroupVoided(2, Lane.NORMAL, 1, 1, f"{PHONE:x}:1:1:x")
    rig.loop.submit(Record(PHONE, 7, later))
    rig.loop.submit_all([Record(PHONE, 8, later)])
    rig.loop.flush()
    assert [effect for effect in rig.effects if isinstance(effect, Answer)] == [
        Answer(7, NotYet()),
        Answer(8, NotYet()),
    ]
    assert rig.log.last == before
