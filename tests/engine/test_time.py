"""The loop and time: what is due becomes a record, whatever else is in the log."""

from __future__ import annotations

import pytest

from nightmail.engine.clock import LASTING_MS
from nightmail.model.effects import ReceiptsGrew
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import Acked, LimitsSet, Ticked, decode_record
from nightmail.model.words import Lane
from tests.engine.rig import PHONE, TABLET, a_message, started

NORMAL = Lane.NORMAL


def test_time_is_logged_only_when_something_is_due() -> None:
    rig = started()
    for _ in range(5):
        rig.wait(1_000)
    assert rig.log.batches == []
    rig.say(PHONE, a_message(life_ms=2_000))
    rig.log.batches.clear()
    rig.wait(1_999)
    assert rig.log.batches == []
    rig.wait(1)
    assert [[decode_record(data).body for data in batch] for _, batch in rig.log.batches] == [[Ticked()]]
    assert (rig.texts(), rig.effects[-1]) == (["gap"], ReceiptsGrew(PHONE))
    rig.wait(1_000)
    assert len(rig.log.batches) == 1


def test_one_tick_is_under_way_at_a_time() -> None:
    rig = started()
    rig.say(PHONE, a_message(life_ms=1_000))
    rig.log.batches.clear()
    rig.log.holds = True
    for _ in range(3):
        rig.wait(1_000)
    rig.log.fail()
    rig.wait(1)
    rig.wait(1)
    rig.log.succeed()
    assert [len(batch) for _, batch in rig.log.batches] == [1, 1]
    assert (rig.log.held, rig.texts()) == (None, ["gap"])


def test_time_passes_although_a_batch_is_always_under_way() -> None:
    rig = started()
    rig.say(PHONE, a_message(1, life_ms=1_000))
    rig.log.batches.clear()
    rig.log.holds = True
    for n in range(2, 7):
        rig.say(PHONE, a_message(n))
        rig.wait(500)
        assert rig.log.held is not None
        rig.submit(TABLET, Acked(NORMAL, 0))
        rig.log.succeed()
    ticked = [[decode_record(data).body for data in batch].count(Ticked()) for _, batch in rig.log.batches]
    assert (sum(ticked), rig.texts()[:2]) == (1, ["gap", "hello"])


@pytest.mark.parametrize("busy", [False, True])
def test_a_backlog_is_worked_off_one_tick_behind_the_other(busy: bool) -> None:
    rig = started()
    rig.say(SERVER, LimitsSet(FoldLimits(tick_items=2)))
    for n in range(1, 6):
        rig.say(PHONE, a_message(n, life_ms=1_000))
    rig.log.batches.clear()
    rig.log.holds = True
    rig.wait(2_000)
    n = 5
    while rig.log.held:
        if busy and n < 12:
            n += 1
            rig.submit(PHONE, a_message(n))
        rig.log.succeed()
    ticked = [[decode_record(data).body for data in batch].count(Ticked()) for _, batch in rig.log.batches]
    assert (sum(ticked), max(ticked)) == (3, 1)
    assert rig.texts() == ["gap"] + ["hello"] * (n - 5)


def test_a_tick_that_waits_when_the_state_is_rebuilt_is_the_only_one() -> None:
    rig = started()
    rig.say(PHONE, a_message(life_ms=1_000))
    rig.log.batches.clear()
    rig.log.holds = True
    rig.wait(1_000)
    rig.loop.fell_behind()
    rig.wait(50)
    rig.log.succeed()
    rig.wait(50)
    assert (len(rig.log.batches), rig.log.held, rig.texts()) == (1, None, ["gap"])


def test_a_clock_that_is_wrong_for_a_moment_ends_nothing() -> None:
    rig = started()
    rig.say(PHONE, a_message(1))
    rig.clock += 31 * DAY_MS
    for _ in range(5):
        rig.wait(1_000)
    rig.say(PHONE, a_message(2, life_ms=2_000))
    rig.clock -= 31 * DAY_MS
    assert (rig.texts(), rig.loop.state.now) == (["hello"] * 2, rig.clock)
    rig.wait(2_000)
    assert (rig.texts(), rig.leaps) == (["hello", "gap"], [(31 * DAY_MS, False)])


def test_a_clock_that_stays_ahead_is_believed_in_the_end() -> None:
    rig = started()
    rig.say(PHONE, a_message())
    rig.clock += 31 * DAY_MS
    rig.wait(50)
    assert rig.texts() == ["hello"]
    rig.wait(LASTING_MS)
    assert (rig.texts(), rig.leaps) == (["gap"], [(31 * DAY_MS, False), (31 * DAY_MS, True)])
