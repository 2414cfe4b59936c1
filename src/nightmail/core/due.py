"""Time, as rows: what is due, in which second of which hour.

Knows:   three levels: the shard (first due second of each hour), an hour (its slots), a slot (items of one second).
Never:   asks what time it is; `shard.now` is the newest time that the log has seen.

An item fires at the first `Ticked` in or after its second, never before; it is then looked at by
a record of its own, which decides whether anything is really too old.

Whoever sends chooses the second in which a message ends. So a second has as many slots as it takes,
each of them a row of its own: a row is written whole, and must stay small.
"""

from __future__ import annotations

from bisect import bisect_right

from nightmail.model.records import Expired, Ticked
from nightmail.model.rows import Due, DueHour, DueItem, Kept, Need

from .state import State, missing_row

SECOND_MS = 1000
HOUR = 3600
SECOND_BITS = 40
"""A slot's number is `k << SECOND_BITS | second`, so the first slot of a second has the second's own number."""
NEXT_SLOT = 1 << SECOND_BITS


def second_of(at_ms: int) -> int:
    """The second that has begun when `at_ms` has passed."""
    return -(-at_ms // SECOND_MS)


def second_of_slot(slot: int) -> int:
    return slot & NEXT_SLOT - 1


def needs_schedule(state: State, second: int, count: int, missing: list[Need]) -> None:
    """What `schedule` will touch for `count` items of one second: the last slot and those opened behind it."""
    number = second // HOUR
    if missing_row(state.due_hours, Kept.DUE_HOUR, number, missing):
        return
    slot, _ = _last_slot(state.due_hours[number] or DueHour(), second)
    if missing_row(state.due, Kept.DUE, slot, missing):
        return
    due, most = state.due[slot], state.shard.limits.slot_items
    beyond = count - max(0, most - (len(due.items) if due else 0))
    while beyond > 0:
        slot, beyond = slot + NEXT_SLOT, beyond - most
        missing_row(state.due, Kept.DUE, slot, missing)


def look(state: State, second: int, count: int) -> None:
    """Raise KeyError unless the rows that `schedule` will change are in memory."""
    missing: list[Need] = []
    needs_schedule(state, second, count, missing)
    if missing:
        raise KeyError(*missing)


def schedule(state: State, second: int, item: DueItem) -> None:
    number = second // HOUR
    hour = state.due_hours[number] or DueHour()
    slot, behind = _last_slot(hour, second)
    due = state.due[slot] or Due()
    if len(due.items) >= state.shard.limits.slot_items:
        slot, due = slot + NEXT_SLOT, Due()
    due.items.append(item)
    state.due.put(slot, due, state.offset)
    if len(due.items) > 1:
        return
    hour.seconds.insert(behind, slot)
    state.due_hours.put(number, hour, state.offset)
    shard = state.shard
    shard.due[number] = min(second, shard.due.get(number, second))
    shard.next_due = min(second, shard.next_due or second)


def _last_slot(hour: DueHour, second: int) -> tuple[int, int]:
    """The slot of a second that was opened last, or its first one; and where in the hour the next one goes."""
    slots = hour.seconds
    behind = bisect_right(slots, second, key=second_of_slot)
    if behind and second_of_slot(slots[behind - 1]) == second:
        return slots[behind - 1], behind
    return second, behind


def is_due(state: State, now: int) -> bool:
    """Whether a `Ticked` accepted at `now` would find something to do."""
    return 0 < state.shard.next_due * SECOND_MS <= max(now, state.now)


def needs_ticked(state: State, _by: int, _ticked: Ticked) -> list[Need]:
    missing: list[Need] = []
    if is_due(state, state.now):
        number = state.shard.next_due // HOUR
        if not missing_row(state.due_hours, Kept.DUE_HOUR, number, missing):
            missing_row(state.due, Kept.DUE, state.due_hours.there(number).seconds[0], missing)
    return missing


def step_ticked(state: State, _by: int, _via: int, _ticked: Ticked) -> None:
    """Take the oldest due items, and let a record of its own look at each."""
    if not is_due(state, state.now):
        return
    number = state.shard.next_due // HOUR
    slot = state.due_hours.there(number).seconds[0]
    due = state.due.there(slot)
    ready, due.items = due.items[: state.shard.limits.tick_items], due.items[state.shard.limits.tick_items :]
    if due.items:
        state.due.put(slot, due, state.offset)
    else:
        state.due.put(slot, None, state.offset)
        _close_first_slot(state, number)
    state.derived.extend(Expired(item.device, item.lane, item.seq) for item in ready)


def needs_pass_over(state: State) -> list[Need]:
    missing: list[Need] = []
    if is_due(state, state.now):
        missing_row(state.due_hours, Kept.DUE_HOUR, state.shard.next_due // HOUR, missing)
    return missing


def pass_over(state: State) -> None:
    """Give up the slot that a `Ticked` could not take: else it would be tried again for ever, and time would stand.

    Whatever is wrong with the rows, each such `Ticked` leaves a slot, or an hour without one, behind.
    """
    if not is_due(state, state.now):
        return
    number = state.shard.next_due // HOUR
    hour = state.due_hours[number]
    if hour and hour.seconds:
        state.due.put(hour.seconds[0], None, state.offset)
    _close_first_slot(state, number)


def _close_first_slot(state: State, number: int) -> None:
    hour = state.due_hours[number] or DueHour()
    del hour.seconds[:1]
    shard = state.shard
    if hour.seconds:
        state.due_hours.put(number, hour, state.offset)
        shard.due[number] = second_of_slot(hour.seconds[0])
    else:
        state.due_hours.put(number, None, state.offset)
        del shard.due[number]
    shard.next_due = min(shard.due.values(), default=0)
