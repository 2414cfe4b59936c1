"""Time, as rows: what is due, in which second of which hour.

Knows:   three levels: the shard (first due second of each hour), an hour (its seconds), a second (its items).
Never:   asks what time it is; `shard.now` is the newest time that the log has seen.

An item fires at the first `Ticked` in or after its second, never before; it is then looked at by
a record of its own, which decides whether anything is really too old.
"""

from __future__ import annotations

from bisect import insort

from nightmail.model.records import Expired, Ticked
from nightmail.model.rows import Due, DueHour, DueItem, Kept, Need

from .state import State, missing_row

SECOND_MS = 1000
HOUR = 3600


def second_of(at_ms: int) -> int:
    """The second that has begun when `at_ms` has passed."""
    return -(-at_ms // SECOND_MS)


def needs_schedule(state: State, second: int, missing: list[Need]) -> None:
    missing_row(state.due_hours, Kept.DUE_HOUR, second // HOUR, missing)
    missing_row(state.due, Kept.DUE, second, missing)


def look(state: State, second: int) -> None:
    """Raise KeyError unless the rows that `schedule` will change are in memory."""
    missing: list[Need] = []
    needs_schedule(state, second, missing)
    if missing:
        raise KeyError(*missing)


def schedule(state: State, second: int, item: DueItem) -> None:
    due = state.due[second] or Due()
    due.items.append(item)
    state.due.put(second, due, state.offset)
    if len(due.items) > 1:
        return
    number = second // HOUR
    hour = state.due_hours[number] or DueHour()
    insort(hour.seconds, second)
    state.due_hours.put(number, hour, state.offset)
    shard = state.shard
    shard.due[number] = min(second, shard.due.get(number, second))
    shard.next_due = min(second, shard.next_due or second)


def is_due(state: State, now: int) -> bool:
    """Whether a `Ticked` accepted at `now` would find something to do."""
    return 0 < state.shard.next_due * SECOND_MS <= max(now, state.now)


def needs_ticked(state: State, _by: int, _ticked: Ticked) -> list[Need]:
    missing: list[Need] = []
    if is_due(state, state.now):
        needs_schedule(state, state.shard.next_due, missing)
    return missing


def step_ticked(state: State, _by: int, _via: int, _ticked: Ticked) -> None:
    """Take the oldest due items, and let a record of its own look at each."""
    if not is_due(state, state.now):
        return
    second = state.shard.next_due
    due = state.due.there(second)
    ready, due.items = due.items[: state.shard.limits.tick_items], due.items[state.shard.limits.tick_items :]
    if due.items:
        state.due.put(second, due, state.offset)
    else:
        state.due.put(second, None, state.offset)
        _close_second(state, second)
    state.derived.extend(Expired(item.device, item.lane, item.seq) for item in ready)


def _close_second(state: State, second: int) -> None:
    number = second // HOUR
    hour = state.due_hours.there(number)
    hour.seconds.remove(second)
    shard = state.shard
    if hour.seconds:
        state.due_hours.put(number, hour, state.offset)
        shard.due[number] = hour.seconds[0]
    else:
        state.due_hours.put(number, None, state.offset)
        del shard.due[number]
    shard.next_due = min(shard.due.values(), default=0)
