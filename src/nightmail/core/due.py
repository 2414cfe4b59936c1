"""Time, as rows: what is due, in which slot of which hour.

Knows:   three levels: the shard (first due moment of each hour), an hour (its slots), a slot (items of one moment).
Never:   asks what time it is; `shard.now` is the newest time that the log has seen.

A moment is 50 ms long (a second in fold 1), and counted from 1970. An item fires at the first `Ticked` in or after
its moment, never before; it is then looked at by a record of its own (`FIRES`), which decides whether anything is
really to be done.

Moments count the time that has elapsed for the shard (`ShardState.elapsed`), which goes on where an operator sets the
clock back. So what was planned by the wrong clock fires in time, and nothing is planned again when the clock is set
back. What was planned before the clock went wrong fires too early instead: `too_early_until` tells, and it is planned
again then.

The sender chooses when a message ends. So a moment has as many slots as it takes, each of them a row of its own:
a row is written whole, and must stay small.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from nightmail.model.records import (
    AnyBody,
    BlobLooked,
    Expired,
    GroupNews,
    GroupSwept,
    LetterExpired,
    Relisted,
    ScheduleLooked,
    SchedulesSwept,
    Swept,
    Ticked,
    WakeLooked,
)
from nightmail.model.rows import Due, DueFor, DueHour, DueItem, Kept, Need
from nightmail.model.rows import Shard as ShardRow

from .rules import Steps
from .schedules.prefetch import needs_due
from .state import ShardState, missing_row

SECOND_MS = 1_000
HOUR_MS = 3_600_000
SLOT_MS = 50
COARSE_SLOT_MS = SECOND_MS
"""How long a moment was in fold 1."""

SECOND_BITS, PART_BITS = 40, 56
"""A slot's number is `part << PART_BITS | k << SECOND_BITS | second`: the k-th slot of the part-th 50 ms of a second.

So the slots that fold 1 has opened, of whole seconds, keep their numbers.
"""
NEXT_SLOT = 1 << SECOND_BITS
SECOND_MASK = NEXT_SLOT - 1
PARTS = SECOND_MS // SLOT_MS

FIRES: Mapping[DueFor, Callable[[DueItem], AnyBody]] = {
    DueFor.EXPIRY: lambda item: Expired(item.device, item.lane, item.seq, item.planned),
    DueFor.DEAD_LETTER: lambda item: LetterExpired(item.seq, item.planned),
    DueFor.BLOCK: lambda item: Swept(item.device, item.lane, item.seq),
    DueFor.GROUP_NEWS: lambda item: GroupNews(item.seq),
    DueFor.RELISTING: lambda item: Relisted(item.seq, fired=True),
    DueFor.GROUP_LOG: lambda item: GroupSwept(item.seq),
    DueFor.SCHEDULE: lambda item: ScheduleLooked(item.device, item.seq),
    DueFor.SCHEDULE_PAGE: lambda item: SchedulesSwept(item.device, item.seq, item.planned),
    DueFor.WAKE: lambda item: WakeLooked(item.device, item.seq),
    DueFor.BLOB: lambda item: BlobLooked(item.device, item.seq, item.planned),
}
"""What an item is for → the record that looks at it."""


def _slot_ms(shard: ShardRow) -> int:
    return SLOT_MS if shard.fold > 1 else COARSE_SLOT_MS


def begin_fine_slots(shard: ShardRow) -> None:
    """From fold 2 on moments are 50 ms: what the shard counts in seconds is counted in those."""
    factor = COARSE_SLOT_MS // SLOT_MS
    shard.due = {hour: first * factor for hour, first in shard.due.items()}
    shard.next_due *= factor


def moment_of(state: ShardState, at_ms: int) -> int:
    """The moment that has begun when `at_ms` has passed."""
    return -(-(at_ms + state.shard.set_back_ms) // _slot_ms(state.shard))


def filed_at(state: ShardState, at: int) -> int:
    """When something with this stamp was filed: during a doubt, that is shortly before the clock was believed."""
    for doubt in state.shard.doubts:
        if doubt.low < at <= doubt.high:
            at = doubt.believed
    return at


def planned_now(state: ShardState) -> int:
    """What an item keeps that is planned now."""
    return state.elapsed if state.shard.fold > 3 else 0


def too_early_until(state: ShardState, planned: int, at: int, life_ms: int) -> int:
    """The moment until which something waits that has fired before its `life_ms` have passed; 0: they have.

    Time has leapt since it was planned: a doubted clock was believed, or a wrong one was believed and set back. An
    item of before fold 4 does not say when that was. Then the stamp `at` must tell: what is later than the time that
    was set back to was filed by the wrong clock, or since, and fires in time.
    """
    if planned:
        return waits_until(state, planned, at, life_ms) if _leapt_ms(state, planned) else 0
    filed = filed_at(state, at)
    if filed + life_ms > state.now and (filed > at or at <= state.shard.set_back_to):
        return moment_of(state, filed + life_ms)
    return 0


def waits_until(state: ShardState, planned: int, at: int, life_ms: int) -> int:
    """Likewise, of something that may be looked at before its time."""
    if not planned:
        return too_early_until(state, planned, at, life_ms)
    end = planned + life_ms + _leapt_ms(state, planned)
    return -(-end // _slot_ms(state.shard)) if end > state.elapsed else 0


def _leapt_ms(state: ShardState, planned: int) -> int:
    return sum(leap.ms for leap in state.shard.leaps if leap.low < planned <= leap.high)


def _first_slot(state: ShardState, moment: int) -> int:
    second, ms = divmod(moment * _slot_ms(state.shard), SECOND_MS)
    return ms // SLOT_MS << PART_BITS | second


def moment_of_slot(shard: ShardRow, slot: int) -> int:
    at_ms = (slot & SECOND_MASK) * SECOND_MS + (slot >> PART_BITS) * SLOT_MS
    return at_ms // _slot_ms(shard)


def hour_of(shard: ShardRow, moment: int) -> int:
    return moment * _slot_ms(shard) // HOUR_MS


# --- planning ---------------------------------------------------------------------------------


def needs_schedule(state: ShardState, moment: int, count: int, missing: list[Need]) -> None:
    """What `schedule` will touch for `count` items of one moment. A slot that its hour does not list is not there."""
    first, number = _first_slot(state, moment), hour_of(state.shard, moment)
    if state.knows_schedules:
        due = state.due.sought(first)
        if due is not None and len(due.items) + count <= state.shard.limits.slot_items:
            return
    if missing_row(state.due_hours, Kept.DUE_HOUR, number, missing):
        missing_row(state.due, Kept.DUE, first, missing)
        return
    slots = _slots_of(state, (state.due_hours[number] or DueHour()).slots, moment)[0]
    if slots:
        missing_row(state.due, Kept.DUE, slots[-1], missing)
    if state.knows_schedules and first in slots[:-1]:
        missing_row(state.due, Kept.DUE, first, missing)


def look(state: ShardState, moment: int, count: int) -> None:
    """Raise KeyError unless the rows that `schedule` will change are in memory."""
    missing: list[Need] = []
    needs_schedule(state, moment, count, missing)
    if missing:
        raise KeyError(*missing)


def schedule(state: ShardState, moment: int, item: DueItem) -> None:
    """Looks at every row before it changes the first, so a step that may be tried begins with it."""
    shard, most, first = state.shard, state.shard.limits.slot_items, _first_slot(state, moment)
    if state.knows_schedules:
        # Most moments have one slot, with room. One that has more may get an item into its first.
        due = state.due.sought(first)
        if due is not None and len(due.items) < most:
            due.items.append(item)
            state.due.changed[first] = state.offset
            return
    number = hour_of(shard, moment)
    hour = state.due_hours[number] or DueHour()
    slots, behind = _slots_of(state, hour.slots, moment)
    if state.knows_schedules and first in slots:
        # It is full, then; or it is not in memory, and may have room.
        state.due.there(first)
    slot = first
    if slots:
        slot = slots[-1]
        due = state.due.there(slot)
        if len(due.items) < most:
            due.items.append(item)
            state.due.changed[slot] = state.offset
            return
        slot += NEXT_SLOT
    state.due.add(slot, Due([item]), state.offset)
    hour.slots.insert(behind, slot)
    state.due_hours.put(number, hour, state.offset)
    shard.due[number] = min(moment, shard.due.get(number, moment))
    shard.next_due = min(moment, shard.next_due or moment)


def _slots_of(state: ShardState, slots: list[int], moment: int) -> tuple[list[int], int]:
    """The slots of a moment, of those of its hour, in the order in which they were opened; and where the next goes."""
    shard = state.shard
    if shard.fold > 1:
        behind = bisect_right(slots, moment, key=lambda slot: (slot & SECOND_MASK) * PARTS + (slot >> PART_BITS))
    else:
        behind = bisect_right(slots, moment, key=lambda slot: moment_of_slot(shard, slot))
    low = behind
    while low and moment_of_slot(shard, slots[low - 1]) == moment:
        low -= 1
    return slots[low:behind], behind


# --- firing -----------------------------------------------------------------------------------


def is_due(state: ShardState, now: int) -> bool:
    """Whether a `Ticked` accepted at `now` would find something to do."""
    shard = state.shard
    return 0 < shard.next_due * _slot_ms(shard) <= max(now, shard.now) + shard.set_back_ms


def needs_ticked(state: ShardState, _by: int, _ticked: Ticked) -> list[Need]:
    missing: list[Need] = []
    if is_due(state, state.now):
        number = hour_of(state.shard, state.shard.next_due)
        if not missing_row(state.due_hours, Kept.DUE_HOUR, number, missing):
            slot = state.due_hours.there(number).slots[0]
            if not missing_row(state.due, Kept.DUE, slot, missing) and state.knows_schedules:
                needs_due(state, state.due.there(slot).items[: state.shard.limits.tick_items], missing)
    return missing


def step_ticked(state: ShardState, _by: int, _via: int, _ticked: Ticked) -> None:
    """Take the oldest due items, and let a record of its own look at each."""
    if not is_due(state, state.now):
        return
    number = hour_of(state.shard, state.shard.next_due)
    slot = state.due_hours.there(number).slots[0]
    due = state.due.there(slot)
    ready, due.items = due.items[: state.shard.limits.tick_items], due.items[state.shard.limits.tick_items :]
    if due.items:
        state.due.put(slot, due, state.offset)
    else:
        state.due.put(slot, None, state.offset)
        _close_first_slot(state, number)
    state.derived.extend(FIRES[item.what](item) for item in ready)


def needs_pass_over(state: ShardState) -> list[Need]:
    missing: list[Need] = []
    if is_due(state, state.now):
        missing_row(state.due_hours, Kept.DUE_HOUR, hour_of(state.shard, state.shard.next_due), missing)
    return missing


def pass_over(state: ShardState) -> None:
    """Give up the slot that a `Ticked` could not take: else it would be tried again for ever, and time would stand.

    Whatever is wrong with the rows, each such `Ticked` leaves a slot, or an hour without one, behind.
    """
    if not is_due(state, state.now):
        return
    number = hour_of(state.shard, state.shard.next_due)
    hour = state.due_hours[number]
    if hour and hour.slots:
        state.due.put(hour.slots[0], None, state.offset)
    _close_first_slot(state, number)


def _close_first_slot(state: ShardState, number: int) -> None:
    hour = state.due_hours[number] or DueHour()
    del hour.slots[:1]
    shard = state.shard
    if hour.slots:
        state.due_hours.put(number, hour, state.offset)
        shard.due[number] = moment_of_slot(shard, hour.slots[0])
    else:
        state.due_hours.put(number, None, state.offset)
        del shard.due[number]
    shard.next_due = min(shard.due.values(), default=0)


STEPS: Steps = {1: {Ticked: (needs_ticked, step_ticked)}}
