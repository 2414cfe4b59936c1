"""The loop and time: what is due becomes a record, whatever else is in the log."""

from __future__ import annotations

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.clock import ClockLimits
from nightmail.model.answers import Done
from nightmail.model.clock import ClockState
from nightmail.model.effects import ReceiptsGrew
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import Acked, ClockSetBack, FoldRaised, LimitsSet, Ticked, decode_record
from nightmail.model.words import Lane
from tests.engine.rig import ALICE, PHONE, START, TABLET, Rig, a_message, restarted, started

NORMAL = Lane.NORMAL
LASTING_MS = ClockLimits().lasting_ms
BELIEVED, AHEAD, BEHIND = ClockState


def states(rig: Rig) -> list[ClockState]:
    return [seen.state for seen in rig.seen]


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


def test_what_was_acknowledged_before_it_was_due_has_not_expired() -> None:
    rig = started()
    rig.say(PHONE, a_message(life_ms=1_000))
    rig.log.holds = True
    rig.say(PHONE, a_message(2))
    rig.submit(TABLET, Acked(NORMAL, 1))
    rig.wait(1_000)
    rig.log.succeed()
    rig.log.succeed()
    bodies = [type(decode_record(data).body) for data in rig.log.batches[-1][1]]
    assert (bodies, rig.texts()) == ([Acked, Ticked], ["hello"])


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
    assert (rig.texts(), states(rig)) == (["hello", "gap"], [AHEAD, BELIEVED])


def test_a_clock_that_stays_ahead_is_believed_in_the_end() -> None:
    rig = started()
    rig.say(PHONE, a_message())
    rig.clock += 31 * DAY_MS
    rig.wait(50)
    assert rig.texts() == ["hello"]
    rig.wait(LASTING_MS)
    assert (rig.texts(), states(rig)) == (["gap"], [AHEAD, BELIEVED])


def test_a_machine_that_boots_with_a_wrong_clock_ends_nothing() -> None:
    rig = started()
    rig.say(PHONE, a_message(1))
    rig.say(PHONE, a_message(2, life_ms=9_000))
    rig = restarted(rig, ahead_ms=31 * DAY_MS)
    for _ in range(5):
        rig.wait(1_000)
    assert (rig.texts(), states(rig)) == (["hello"] * 2, [AHEAD])
    rig.clock -= 31 * DAY_MS
    rig.wait(4_000)
    assert (rig.texts(), states(rig)) == (["hello", "gap"], [AHEAD, BELIEVED])


def test_a_server_that_was_off_for_longer_than_messages_live_ends_them_after_ten_minutes() -> None:
    rig = started()
    rig.say(PHONE, a_message())
    rig = restarted(rig, ahead_ms=31 * DAY_MS)
    rig.wait(50)
    rig.wait(LASTING_MS - 1)
    assert rig.texts() == ["hello"]
    rig.wait(1)
    assert (rig.texts(), states(rig)) == (["gap"], [AHEAD, BELIEVED])


def test_what_was_sent_while_the_clock_was_doubted_lives_as_long_as_was_promised() -> None:
    rig = started()
    rig.say(SERVER, FoldRaised(NEWEST_FOLD))
    rig.say(PHONE, a_message(1))
    rig = restarted(rig, ahead_ms=31 * DAY_MS)
    rig.wait(50)
    rig.say(PHONE, a_message(2, life_ms=DAY_MS))
    rig.say(PHONE, a_message(3))
    rig.wait(LASTING_MS)
    believed = rig.clock
    for until, texts in (
        (believed, ["gap", "hello", "hello"]),
        (believed + DAY_MS - LASTING_MS - 50, ["gap", "hello", "hello"]),
        (believed + DAY_MS - LASTING_MS + 100, ["gap", "hello"]),
        (believed + 30 * DAY_MS - 50, ["gap", "hello"]),
        (believed + 30 * DAY_MS, ["gap"]),
    ):
        rig.wait(until - rig.clock)
        assert rig.texts() == texts
    again = restarted(rig)
    assert again.everything() == rig.everything()


def test_what_was_sent_during_a_doubt_that_a_restart_interrupts_lives_as_long_as_was_promised() -> None:
    rig = started()
    rig.say(SERVER, FoldRaised(NEWEST_FOLD))
    rig.say(PHONE, a_message(1))
    rig = restarted(rig, ahead_ms=31 * DAY_MS)
    rig.wait(50)
    rig.say(PHONE, a_message(2))
    rig = restarted(rig)
    rig.wait(50)
    rig.say(PHONE, a_message(3))
    rig.wait(LASTING_MS)
    believed = rig.clock
    assert rig.texts() == ["gap", "hello", "hello"]
    rig.wait(believed + 30 * DAY_MS - 50 - rig.clock)
    assert rig.texts() == ["gap", "hello", "hello"]
    rig.wait(50)
    assert rig.texts() == ["gap"]


def test_a_doubt_that_ends_is_forgotten() -> None:
    rig = started()
    rig.say(SERVER, FoldRaised(NEWEST_FOLD))
    rig.clock += 31 * DAY_MS
    rig.say(PHONE, a_message(1))
    assert rig.loop.state.shard.doubted_from
    rig.clock -= 31 * DAY_MS
    rig.say(PHONE, a_message(2))
    assert not rig.loop.state.shard.doubted_from


def test_an_idle_server_that_is_restarted_knows_from_the_folder_that_its_clock_is_right() -> None:
    rig = restarted(started(), ahead_ms=20 * DAY_MS, folder_ms=START + 20 * DAY_MS - 60_000)
    rig.wait(50)
    assert states(rig) == []


# --- setting it right ---------------------------------------------------------------------------


def wrongly_believed() -> Rig:
    """A clock that was 10 days ahead was believed, and is right again."""
    rig = started()
    rig.say(SERVER, FoldRaised(NEWEST_FOLD))
    rig.say(PHONE, a_message(1))
    rig.clock += 10 * DAY_MS
    rig.wait(50)
    rig.wait(LASTING_MS)
    rig.say(PHONE, a_message(2))
    rig.say(PHONE, a_message(3, life_ms=60_000))
    rig.clock -= 10 * DAY_MS
    rig.wait(50)
    return rig


def test_a_wrong_clock_that_was_believed_is_told_until_an_operator_sets_the_time_back() -> None:
    rig = wrongly_believed()
    assert states(rig) == [AHEAD, BELIEVED, BEHIND]
    assert rig.loop.state.now - rig.clock == 10 * DAY_MS - 50
    via = rig.say(SERVER, ClockSetBack(rig.clock, rig.loop.state.now))
    assert (rig.answers(via), rig.loop.state.now) == ([Done()], rig.clock)
    rig.wait(50)
    assert (states(rig)[3:], rig.loop.clock_seen.time_ms) == ([BELIEVED], rig.clock)


def test_after_the_time_was_set_back_everything_lives_as_long_as_was_promised() -> None:
    rig = wrongly_believed()
    rig.say(SERVER, ClockSetBack(rig.clock, rig.loop.state.now))
    rig.say(PHONE, a_message(4, life_ms=60_000))
    rig.say(PHONE, a_message(5))
    rig.wait(59_900)
    assert rig.texts() == ["hello"] * 5
    rig.wait(50)  # What was filed by the wrong clock, and what has been filed since.
    rig.wait(50)
    assert rig.texts() == ["hello", "hello", "gap", "hello"]
    back = START + LASTING_MS + 100
    for until, texts in (
        (START + 21 * DAY_MS, ["hello", "hello", "gap", "hello"]),  # Looked at too early.
        (START + 30 * DAY_MS - 50, ["hello", "hello", "gap", "hello"]),
        (START + 30 * DAY_MS, ["gap", "hello", "gap", "hello"]),  # What was filed before the clock went wrong.
        (back + 30 * DAY_MS - 50, ["gap", "hello", "gap", "hello"]),
        (back + 30 * DAY_MS, ["gap"]),
    ):
        rig.wait(until - rig.clock)
        assert rig.texts() == texts
    rig.wait(DAY_MS)
    assert rig.loop.state.shard.next_due == 0


def test_the_time_of_the_batch_that_sets_it_back_does_not_count_even_if_the_rest_had_to_wait() -> None:
    rig = wrongly_believed()
    right, rig.clock = rig.clock, rig.clock + 10 * DAY_MS
    rig.rows.holds_loads = rig.log.holds = True
    rig.submit(SERVER, ClockSetBack(right, rig.clock))
    rig.submit(TABLET, a_message(1, by=TABLET, to=ALICE))
    rig.loop.flush()
    assert (rig.log.batches[-1][0], len(rig.log.batches[-1][1])) == (rig.clock, 2)
    rig.clock, rig.log.holds = right, False
    rig.log.succeed()
    assert rig.rows.loads
    rig.rows.holds_loads = False
    while rig.rows.loads:
        rig.rows.answer_load()
    again = restarted(rig)
    assert (rig.loop.state.now, again.loop.state.now) == (right, right)
    assert again.everything() == rig.everything()
