"""Checkpoints: taken whole, offered until they are stored, and with what others were told and may not have."""

from __future__ import annotations

import msgspec
import pytest

from nightmail.core.state import ShardState, encode_row
from nightmail.engine.forwarder import Forwarder
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Checkpoint, Failed, Overtaken, Rows
from nightmail.engine.saver import Saver, SaverLimits, take_checkpoint
from nightmail.model.effects import Forward
from nightmail.model.notes import Note, Placed, Taken
from nightmail.model.records import Acked, Receipted, Voided
from nightmail.model.rows import Kept, RowKey, queue_id
from nightmail.model.words import Lane, MessageState, Reason
from tests.engine.rig import ALICE, BOB, PHONE, START, TABLET, HeldRows, Rig, a_message, restarted, started

NORMAL = Lane.NORMAL
SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
QUEUE = queue_id(TABLET, NORMAL)


class Bench:
    """A saver with nothing around it."""

    def __init__(self, limits: SaverLimits | None = None) -> None:
        self.rows = HeldRows()
        self.rows.holds_saves = True
        self.saved: list[Checkpoint | None] = []
        self.troubles: list[str] = []
        self.saver = Saver(self.rows, limits or SaverLimits(), self.saved.append, self.troubles.append)

    def start(self, now: int = 0) -> None:
        self.saver.start(a_state(), now, START)

    def fail_at(self, now: int) -> None:
        self.saver.tick(now)
        self.rows.answer_save(Failed(f"no at {now}"))

    def is_given_at(self, now: int) -> bool:
        before = len(self.rows.given)
        self.saver.tick(now)
        return len(self.rows.given) > before


def a_state() -> ShardState:
    """Two people, and one message that waits."""
    rig = started(SELDOM)
    rig.say(PHONE, a_message())
    return rig.loop.state


# --- saving and trying again ------------------------------------------------------------------


def test_a_checkpoint_is_given_once_and_then_waited_for() -> None:
    bench = Bench()
    bench.start()
    for now in (0, 1, 10_000):
        bench.saver.tick(now)
    assert (len(bench.rows.given), bench.saver.idle, bench.saver.under_way, bench.saved) == (1, False, True, [])
    bench.rows.answer_save()
    assert (bench.saved, bench.saver.idle, bench.saver.under_way) == (bench.rows.given, True, False)


def test_a_failed_save_is_tried_again_after_100_200_400_800_and_1600_ms_and_then_at_that_pace() -> None:
    bench = Bench()
    bench.start()
    now = 0
    bench.fail_at(now)
    for wait in (100, 200, 400, 800, 1_600, 1_600, 1_600):
        assert not bench.is_given_at(now + wait - 1)
        assert bench.is_given_at(now + wait)
        bench.rows.answer_save(Failed("no"))
        now += wait


def test_the_operator_is_told_once_when_the_last_retry_has_failed() -> None:
    bench = Bench()
    bench.start()
    times = (0, 100, 300, 700, 1_500)
    for now in times:
        bench.fail_at(now)
    assert bench.troubles == []
    bench.fail_at(3_100)
    assert bench.troubles == ["no at 3100"]
    for now in (4_700, 6_300, 7_900):
        bench.fail_at(now)
    assert len(bench.troubles) == 1


def test_the_operator_is_told_again_of_the_next_trouble() -> None:
    bench = Bench(SaverLimits(retry_ms=(10,)))
    for now in (0, 1_000):
        bench.start()
        bench.fail_at(now)
        bench.fail_at(now + 10)
        bench.saver.tick(now + 20)
        bench.rows.answer_save()
    assert bench.troubles == ["no at 10", "no at 1010"]


def test_what_failed_is_offered_again_unchanged_whatever_happens_meanwhile() -> None:
    rig = started()
    rig.rows.holds_saves = True
    rig.wait(10_000)
    rig.rows.answer_save(Failed("no"))
    for n in range(1, 4):
        rig.say(PHONE, a_message(n))
        rig.wait(1_600)
        rig.rows.answer_save(Failed("no"))
    first = rig.rows.given[0]
    assert len(rig.rows.given) == 4
    assert all(given is first for given in rig.rows.given)
    rig.rows.holds_saves = False
    rig.wait(1_600)
    rig.wait(10_000)
    assert [saved.upto for saved in rig.saved] == [2, 5]
    assert restarted(rig).everything() == rig.everything()


def test_a_save_that_was_stored_although_it_failed_does_no_harm() -> None:
    rig = started()
    rig.rows.holds_saves = True
    rig.wait(10_000)
    rig.rows.answer_save(Failed("unknown"), kept=True)
    rig.say(PHONE, a_message())
    rig.rows.holds_saves = False
    rig.wait(100)
    rig.wait(10_000)
    assert [saved.upto for saved in rig.saved] == [2, 3]
    assert restarted(rig).texts() == ["hello"]


def test_one_that_was_overtaken_is_dropped() -> None:
    bench = Bench()
    bench.start()
    bench.saver.tick(0)
    bench.rows.answer_save(Overtaken(9))
    assert (bench.saved, bench.saver.idle, bench.troubles) == ([None], True, [])
    assert not bench.is_given_at(10_000)


def test_what_is_abandoned_is_never_given_again() -> None:
    bench = Bench()
    bench.start()
    bench.fail_at(0)
    bench.saver.abandon()
    assert (bench.saver.idle, bench.is_given_at(10_000)) == (True, False)


def a_forwarder(rows: Rows, count: int) -> Forwarder:
    """It has told another shard so many things."""
    forwarder = Forwarder(0, lambda _shard, _records, _done: None, rows)
    for k in range(1, count + 1):
        forwarder.add(
            Forward(1, k, Receipted(PHONE, BOB, NORMAL, TABLET, MessageState.DELIVERED, Reason.NONE, 5, ((k, k),)))
        )
    return forwarder


def test_a_checkpoint_has_what_was_told_others_and_does_not_wait_for_their_logs() -> None:
    bench, rows = Bench(), HeldRows()
    forwarder = a_forwarder(rows, 2)
    saver = Saver(rows, SaverLimits(), bench.saved.append, bench.troubles.append, forwarder)
    told = forwarder.take_unsaved()
    saver.start(a_state(), 0, START)
    saver.tick(0)
    assert [[(shard, k) for shard, k, _ in given.forwards] for given in bench.saved if given] == [[(1, 1), (1, 2)]]
    assert (rows.forwards, forwarder.take_unsaved()) == ({(shard, k): record for shard, k, record in told}, [])


def test_forwards_start_a_checkpoint_and_count_as_unsaved_until_they_are_saved() -> None:
    state, rows = a_state(), HeldRows()
    rows.holds_saves = True
    forwarder = a_forwarder(rows, 3)
    size = sum(len(record) for _, _, record in forwarder.take_unsaved())
    alone = Saver(rows, SaverLimits(), lambda _: None, lambda _: None)
    saver = Saver(rows, SaverLimits(), lambda _: None, lambda _: None, forwarder)
    counted = saver.unsaved(state) - alone.unsaved(state), saver.unsaved_bytes(state) - alone.unsaved_bytes(state)
    assert counted == (forwarder.unsaved, forwarder.unsaved_bytes) == (3, size)
    for limits in (
        SaverLimits(checkpoint_rows=state.count_changed() + 3),
        SaverLimits(checkpoint_bytes=state.filed_bytes + size),
    ):
        due = [Saver(rows, limits, lambda _: None, lambda _: None, told).is_due(state, 0) for told in (None, forwarder)]
        assert due == [False, True]
    saver.start(state, 0, START)
    saver.tick(0)
    assert forwarder.unsaved == 3
    rows.answer_save(Failed("no"))
    assert forwarder.unsaved == 3
    saver.tick(100)
    rows.answer_save()
    assert (forwarder.unsaved, forwarder.unsaved_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "now", "due"),
    [
        (SaverLimits(), 9_999, False),
        (SaverLimits(), 10_000, True),
        (SaverLimits(checkpoint_rows=7), 0, True),
        (SaverLimits(checkpoint_rows=8), 0, False),
        (SaverLimits(checkpoint_bytes=5), 0, True),
        (SaverLimits(checkpoint_bytes=6), 0, False),
    ],
)
def test_a_checkpoint_is_due_when_enough_has_changed_or_for_long_enough(
    limits: SaverLimits, now: int, due: bool
) -> None:
    state = a_state()
    assert state.filed_bytes == len("hello")
    assert state.count_changed() == 7  # 2 accounts, 2 mailboxes, 1 stream, 1 due second, 1 due hour
    assert Bench(limits).saver.is_due(state, now) is due


# --- what a checkpoint holds ------------------------------------------------------------------


def test_a_checkpoint_holds_every_changed_row_with_the_offset_that_changed_it() -> None:
    state = a_state()
    checkpoint = take_checkpoint(state, START + 5)
    assert (checkpoint.upto, checkpoint.at) == (3, START + 5)
    versions = {RowKey(kind, a, b): version for kind, a, b, version, _ in checkpoint.rows}
    assert versions[RowKey(Kept.ACCOUNT, ALICE)] == 1
    assert versions[RowKey(Kept.ACCOUNT, BOB)] == 2
    assert versions[RowKey(Kept.MAILBOX, PHONE)] == 1
    assert versions[RowKey(Kept.MAILBOX, TABLET)] == 3
    assert versions[RowKey(Kept.STREAM, PHONE, BOB)] == 3
    assert versions[RowKey(Kept.SHARD, 0)] == 3
    values = {RowKey(kind, a, b): value for kind, a, b, _, value in checkpoint.rows}
    assert values[RowKey(Kept.ACCOUNT, BOB)] == encode_row(state.accounts[BOB])
    assert checkpoint.entries == [(QUEUE, 1, encode_row(state.entries[QUEUE][1]))]


def test_nothing_is_in_two_checkpoints_unless_it_changed_again() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    take_checkpoint(rig.loop.state, START)
    rig.say(PHONE, Voided(BOB, NORMAL, 2, 1, a_message(2).id))
    second = take_checkpoint(rig.loop.state, START)
    assert [RowKey(*row[:3]) for row in second.rows] == [RowKey(Kept.SHARD, 0), RowKey(Kept.STREAM, PHONE, BOB)]
    assert (second.entries, second.cleared, second.dropped, second.notes) == ([], [], [], [])


def test_an_entry_that_waits_through_two_checkpoints_is_written_once() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    take_checkpoint(rig.loop.state, START)
    rig.say(PHONE, a_message(2))
    assert [(queue, seq) for queue, seq, _ in take_checkpoint(rig.loop.state, START).entries] == [(QUEUE, 2)]


def test_what_was_delivered_between_two_checkpoints_is_never_written() -> None:
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message(1, text="secret"))
    rig.say(TABLET, Acked(NORMAL, 1))
    checkpoint = take_checkpoint(rig.loop.state, START)
    assert (checkpoint.entries, checkpoint.cleared) == ([], [])
    assert b"secret" not in b"".join(value or b"" for kind, *_, value in checkpoint.rows if kind != Kept.STREAM)


def test_what_is_acknowledged_while_it_is_being_saved_is_cleared_by_the_next_one() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.say(TABLET, Acked(NORMAL, 1))
    rig.rows.holds_saves = False
    rig.rows.answer_save()
    assert list(rig.rows.entries) == [(QUEUE, 1)]
    rig.loop.save(at_once=True)
    assert (rig.rows.given[-1].cleared, rig.rows.entries) == ([(QUEUE, 1)], {})


def test_what_expires_after_it_was_saved_is_dropped_by_the_next_one() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1, life_ms=1_000))
    rig.say(PHONE, a_message(2))
    rig.loop.save(at_once=True)
    rig.wait(1_000)
    rig.loop.save(at_once=True)
    assert (rig.rows.given[-1].dropped, list(rig.rows.entries)) == ([(QUEUE, 1)], [(QUEUE, 2)])


def test_a_checkpoint_brings_the_delivery_logs_new_lines_and_whom_they_speak_of() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message())
    rig.say(TABLET, Acked(NORMAL, 1))
    checkpoint = take_checkpoint(rig.loop.state, START)
    id_ = a_message().id
    (piece,) = checkpoint.notes
    assert msgspec.msgpack.decode(piece, type=list[Note]) == [
        Placed(START, PHONE, BOB, NORMAL, 1, id_, None, False, False, ((TABLET, 1),)),
        Taken(START, TABLET, NORMAL, 1, 1, ()),
    ]
    assert set(checkpoint.noted) == {PHONE, TABLET}


def test_a_later_change_does_not_reach_into_what_was_taken() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    checkpoint = take_checkpoint(rig.loop.state, START)
    before = msgspec.msgpack.encode([list(map(tuple, checkpoint.rows)), checkpoint.entries, checkpoint.cleared])
    rig.say(PHONE, a_message(2))
    rig.say(TABLET, Acked(NORMAL, 2))
    after = msgspec.msgpack.encode([list(map(tuple, checkpoint.rows)), checkpoint.entries, checkpoint.cleared])
    assert after == before


def test_what_is_unsaved_counts_what_is_being_saved_too() -> None:
    rig: Rig = started(SELDOM)
    saver = Saver(rig.rows, SaverLimits(), lambda _: None, lambda _: None)
    before = saver.unsaved(rig.loop.state)
    assert before >= 4
    saver.start(rig.loop.state, 0, START)
    assert saver.unsaved(rig.loop.state) == 5  # 2 accounts, 2 mailboxes, the shard


def test_unsaved_bytes_are_those_filed_and_those_being_saved() -> None:
    bench, state = Bench(), a_state()
    assert bench.saver.unsaved_bytes(state) == len("hello")
    bench.saver.start(state, 0, START)
    bench.saver.tick(0)
    ((*_, data),) = bench.rows.given[0].entries
    assert (state.filed_bytes, bench.saver.unsaved_bytes(state)) == (0, len(data))
    bench.rows.answer_save()
    assert bench.saver.unsaved_bytes(state) == 0
