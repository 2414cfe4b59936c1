from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.core.due import (
    NEXT_SLOT,
    PART_BITS,
    is_due,
    moment_of,
    needs_schedule,
    needs_ticked,
    schedule,
    step_ticked,
)
from nightmail.core.shard import step_fold_raised
from nightmail.core.state import NEWEST_FOLD, ShardState, encode_row
from nightmail.engine.folding import ROUNDS_MAX
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Expired, FoldRaised, LetterExpired, Ticked
from nightmail.model.rows import Due, DueFor, DueHour, DueItem, Kept, Need, RowKey, Shard
from nightmail.model.words import Lane

NORMAL, HIGH = Lane
HOUR = 3600


def fine() -> ShardState:
    """A shard of the newest fold: moments of 50 ms. The others here are of fold 1, with seconds, unless they say so."""
    state = ShardState()
    step_fold_raised(state, 0, 0, FoldRaised(NEWEST_FOLD))
    return state


def put(state: ShardState, second: int, item: DueItem) -> None:
    for _ in range(ROUNDS_MAX):
        load(state, lambda missing: needs_schedule(state, second, 1, missing))
    schedule(state, second, item)


def load(state: ShardState, wanted: Callable[[list[Need]], None]) -> None:
    missing: list[Need] = []
    wanted(missing)
    for key in missing:
        assert isinstance(key, RowKey)
        state.install(key, None)


def tick(state: ShardState, now: int) -> list[Expired]:
    state.shard.now = max(state.shard.now, now)
    assert needs_ticked(state, 0, Ticked()) == []
    step_ticked(state, 0, 0, Ticked())
    fired = list(state.derived)
    state.derived.clear()
    assert all(isinstance(each, Expired) for each in fired)
    return fired  # type: ignore[return-value]


@pytest.mark.parametrize(("at_ms", "second"), [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2)])
def test_in_fold_1_a_second_is_due_only_when_all_of_the_time_has_passed(at_ms: int, second: int) -> None:
    assert moment_of(ShardState(), at_ms) == second


@pytest.mark.parametrize(("at_ms", "moment"), [(0, 0), (1, 1), (50, 1), (51, 2), (1_000, 20), (1_001, 21)])
def test_a_moment_is_due_only_when_all_of_the_time_has_passed(at_ms: int, moment: int) -> None:
    assert moment_of(fine(), at_ms) == moment


def test_what_is_due_is_kept_by_second_hour_and_shard() -> None:
    state = ShardState()
    first, second, third = (DueItem(8 + n, NORMAL, 0) for n in range(3))
    put(state, 2 * HOUR + 5, first)
    put(state, 2 * HOUR + 1, second)
    put(state, 7 * HOUR, third)
    assert (state.due[2 * HOUR + 5], state.due[2 * HOUR + 1], state.due[7 * HOUR]) == (
        Due([first]),
        Due([second]),
        Due([third]),
    )
    assert state.due_hours == {2: DueHour([2 * HOUR + 1, 2 * HOUR + 5]), 7: DueHour([7 * HOUR])}
    assert (state.shard.due, state.shard.next_due) == ({2: 2 * HOUR + 1, 7: 7 * HOUR}, 2 * HOUR + 1)


def test_nothing_is_due_before_its_second() -> None:
    state = ShardState()
    assert not is_due(state, 10**15)
    put(state, 100, DueItem(8, NORMAL, 0))
    assert not is_due(state, 99_999)
    assert is_due(state, 100_000)
    assert tick(state, 99_999) == []
    assert state.shard.next_due == 100


def test_time_that_was_seen_once_stays_seen() -> None:
    state = ShardState()
    put(state, 100, DueItem(8, NORMAL, 0))
    state.shard.now = 100_000
    assert is_due(state, 5)


def test_items_fire_in_the_order_in_which_they_are_due_then_were_scheduled() -> None:
    state = ShardState()
    for second, device in ((200, 1), (100, 2), (200, 3), (100, 4)):
        put(state, second, DueItem(device, HIGH, device))
    assert tick(state, 300_000) == [Expired(2, HIGH, 2), Expired(4, HIGH, 4)]
    assert tick(state, 300_000) == [Expired(1, HIGH, 1), Expired(3, HIGH, 3)]
    assert tick(state, 300_000) == []


def test_one_tick_takes_a_bounded_number_of_items() -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(tick_items=2)
    for device in range(1, 6):
        put(state, 100, DueItem(device, NORMAL, 0))
    assert [[each.device for each in tick(state, 100_000)] for _ in range(4)] == [[1, 2], [3, 4], [5], []]


def test_what_has_fired_leaves_no_row_behind() -> None:
    state = ShardState()
    put(state, 100, DueItem(1, NORMAL, 0))
    put(state, 101, DueItem(1, NORMAL, 0))
    tick(state, 100_000)
    assert (state.due[100], state.due_hours[0]) == (None, DueHour([101]))
    tick(state, 101_000)
    assert (state.due[101], state.due_hours[0]) == (None, None)
    assert state.shard == Shard(now=101_000)


def test_a_second_can_be_used_again_after_it_has_fired() -> None:
    state = ShardState()
    put(state, 100, DueItem(1, NORMAL, 0))
    tick(state, 100_000)
    put(state, 100, DueItem(2, NORMAL, 0))
    assert tick(state, 100_000) == [Expired(2, NORMAL, 0)]


def test_a_tick_needs_only_the_first_slot_of_the_first_due_hour() -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(slot_items=1)
    for second in (100, 100, 101, 2 * HOUR):
        put(state, second, DueItem(1, NORMAL, 0))
    first = state.due_hours.pop(0)
    state.due.clear()
    state.due_hours.clear()
    assert needs_ticked(state, 0, Ticked()) == []
    state.shard.now = 10**9
    assert needs_ticked(state, 0, Ticked()) == [RowKey(Kept.DUE_HOUR, 0)]
    state.install(RowKey(Kept.DUE_HOUR, 0), encode_row(first))
    assert needs_ticked(state, 0, Ticked()) == [RowKey(Kept.DUE, 100)]


def test_a_second_has_as_many_slots_as_it_takes() -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(tick_items=256)
    for device in range(2_500):
        put(state, 100, DueItem(device, NORMAL, 0))
    put(state, 99, DueItem(1, NORMAL, 0))
    put(state, 101, DueItem(1, NORMAL, 0))
    second, third = 100 + NEXT_SLOT, 100 + 2 * NEXT_SLOT
    assert [len(state.due.there(slot).items) for slot in (100, second, third)] == [1_000, 1_000, 500]
    assert state.due_hours[0] == DueHour([99, 100, second, third, 101])
    assert (state.shard.due, state.shard.next_due) == ({0: 99}, 99)
    fired = [tick(state, 100_000) for _ in range(14)]
    assert [len(each) for each in fired] == [1, 256, 256, 256, 232, 256, 256, 256, 232, 256, 244, 0, 0, 0]
    assert [each.device for some in fired[1:] for each in some] == list(range(2_500))
    assert (state.due_hours[0], state.shard.next_due) == (DueHour([101]), 101)


def test_a_row_that_was_written_before_there_were_slots_is_the_first_one_and_full() -> None:
    state = ShardState()
    put(state, 100, DueItem(1, NORMAL, 0))
    state.due.there(100).items *= 5_000
    put(state, 100, DueItem(2, NORMAL, 0))
    assert (len(state.due.there(100).items), state.due[100 + NEXT_SLOT]) == (5_000, Due([DueItem(2, NORMAL, 0)]))


def test_a_slot_that_its_hour_does_not_list_is_not_looked_for() -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(slot_items=2)
    put(state, 100, DueItem(0, NORMAL, 0))
    missing: list[Need] = []
    needs_schedule(state, 100, 4, missing)
    needs_schedule(state, 200, 1, missing)
    assert missing == []
    for device in range(1, 5):
        schedule(state, 100, DueItem(device, NORMAL, 0))
    schedule(state, 200, DueItem(5, NORMAL, 0))
    assert state.due_hours[0] == DueHour([100, 100 + NEXT_SLOT, 100 + 2 * NEXT_SLOT, 200])


def test_a_first_slot_that_has_left_memory_is_loaded_because_it_may_have_room() -> None:
    state = fine()
    state.shard.limits = FoldLimits(slot_items=1, tick_items=1)
    for device in (1, 2):
        put(state, 2_000, DueItem(device, NORMAL, 0))
    first = state.due.rows.pop(100)
    missing: list[Need] = []
    needs_schedule(state, 2_000, 1, missing)
    assert missing == [RowKey(Kept.DUE, 100)]
    with pytest.raises(KeyError):
        schedule(state, 2_000, DueItem(3, NORMAL, 0))
    assert state.due_hours[0] == DueHour([100, 100 + NEXT_SLOT])
    state.due[100] = first
    schedule(state, 2_000, DueItem(3, NORMAL, 0))
    assert state.due_hours[0] == DueHour([100, 100 + NEXT_SLOT, 100 + 2 * NEXT_SLOT])


def test_moments_of_one_second_have_slots_of_their_own_in_order() -> None:
    state = fine()
    for moment in (2_001, 2_000, 2_019, 2_000):
        put(state, moment, DueItem(moment, NORMAL, 0))
    assert state.due_hours[0] == DueHour([100, 1 << PART_BITS | 100, 19 << PART_BITS | 100])
    assert (state.shard.due, state.shard.next_due) == ({0: 2_000}, 2_000)
    assert not is_due(state, 99_999)
    assert [each.device for each in tick(state, 100_000)] == [2_000, 2_000]
    assert tick(state, 100_049) == []
    assert [each.device for each in tick(state, 100_050)] == [2_001]
    assert [each.device for each in tick(state, 100_950)] == [2_019]


def test_what_fold_1_had_planned_fires_at_its_time_after_the_fold_is_raised() -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(slot_items=1)
    for second in (100, 100, 2 * HOUR):
        put(state, second, DueItem(second, NORMAL, 0))
    step_fold_raised(state, 0, 0, FoldRaised(NEWEST_FOLD))
    assert (state.shard.due, state.shard.next_due) == ({0: 2_000, 2: 2 * HOUR * 20}, 2_000)
    put(state, 1_999, DueItem(1, NORMAL, 0))
    put(state, 2_000, DueItem(2, NORMAL, 0))
    put(state, 2_001, DueItem(3, NORMAL, 0))
    first, third = 19 << PART_BITS | 99, 1 << PART_BITS | 100
    assert state.due_hours[0] == DueHour([first, 100, 100 + NEXT_SLOT, 100 + 2 * NEXT_SLOT, third])
    assert [[each.device for each in tick(state, 99_950)] for _ in range(2)] == [[1], []]
    assert [[each.device for each in tick(state, 100_050)] for _ in range(5)] == [[100], [100], [2], [3], []]
    assert [each.device for each in tick(state, 2 * HOUR * 1_000)] == [2 * HOUR]
    assert state.shard.next_due == 0


def test_the_fold_is_raised_once_however_often_it_is_said() -> None:
    state = fine()
    put(state, 2_000, DueItem(8, NORMAL, 0))
    step_fold_raised(state, 0, 0, FoldRaised(NEWEST_FOLD))
    assert (state.shard.due, state.shard.next_due) == ({0: 2_000}, 2_000)


def test_an_item_is_looked_at_by_the_record_that_it_is_for() -> None:
    state = fine()
    put(state, 2_000, DueItem(8, HIGH, 3))
    put(state, 2_000, DueItem(0, NORMAL, 77, DueFor.DEAD_LETTER))
    state.shard.now = 100_000
    step_ticked(state, 0, 0, Ticked())
    assert list(state.derived) == [Expired(8, HIGH, 3), LetterExpired(77)]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3 * HOUR) | st.integers(1, 3))), st.integers(1, 3))
def test_everything_fires_once_never_early_and_in_order(steps: list[tuple[bool, int]], slot_items: int) -> None:
    state = ShardState()
    state.shard.limits = FoldLimits(slot_items=slot_items)
    waiting: list[tuple[int, int]] = []
    now = 0
    for number, (ticks, second) in enumerate(steps):
        if not ticks:
            second += now // 1000
            put(state, second, DueItem(number, NORMAL, 0))
            waiting.append((second, number))
            continue
        now = max(now, second * 1000)
        while is_due(state, now):
            for fired in tick(state, now):
                assert (min(waiting)[0], fired.device) == min(
                    (due, device) for due, device in waiting if due == min(waiting)[0]
                )
                waiting.remove(min(waiting))
        assert all(due * 1000 > now for due, _ in waiting)
        assert state.shard.next_due == min((due for due, _ in waiting), default=0)
