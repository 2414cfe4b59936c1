"""A schedule is looked at: its time may have come, to be fired, called out or given up.

Knows:   one schedule, and its author's devices.
Touches: its rows and the due rows; through `tell`, the shard that it is for; through an effect, the outlet.
Never:   does anything before `next_at`: what comes earlier is planned for then.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.retries import WEBHOOKS, longest_ms
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.effects import Call
from nightmail.model.records import Fired, GroupFired, ScheduleLooked, SchedulesEnded
from nightmail.model.rows import DueFor, DueItem, Kept, Need
from nightmail.model.schedule_rows import (
    PAGE_STATES,
    AccountSchedules,
    CallContent,
    CallTarget,
    GroupContent,
    GroupTarget,
    PairContent,
    PairTarget,
    Schedule,
    SchedulePage,
    ScheduleState,
)
from nightmail.model.words import Lane

from .keeping import change_state, end, look_again, look_at_end, needs_change

PENDING, PROCESSING, FAILED = ScheduleState.PENDING, ScheduleState.PROCESSING, ScheduleState.FAILED


def needs_looked(state: ShardState, _by: int, looked: ScheduleLooked) -> list[Need]:
    account, serial = looked.account, looked.serial
    missing: list[Need] = []
    if missing_pair(state.schedules, Kept.SCHEDULE, account, serial, missing):
        return missing
    schedule = state.schedules[account, serial]
    if schedule is None or not schedule.next_at or not schedule.state.is_open:
        return missing
    if _waits(state, schedule):
        due.needs_schedule(state, due.moment_of(state, schedule.next_at), 1, missing)
    else:
        needs_change(state, account, serial, missing)
    return missing


def step_looked(state: ShardState, _by: int, _via: int, looked: ScheduleLooked) -> None:
    account, serial = looked.account, looked.serial
    schedule = state.schedules.rows[account, serial]
    if schedule is None or not schedule.next_at or not schedule.state.is_open:
        return
    if _waits(state, schedule):
        plan_look(state, account, serial, schedule)
        return
    if type(schedule.target) is CallTarget:
        state.schedule_pages.rows[account, serial // PAGE_STATES]
        if not schedule.is_calling:
            schedule.attempt += 1
        call(state, account, serial, schedule)
    elif schedule.is_stale:
        look_at_end(state, account, serial)
        end(state, account, serial, schedule, FAILED, "stale_devices")
    else:
        _fire(state, account, serial, schedule)


def plan_look(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    moment = due.moment_of(state, schedule.next_at)
    due.schedule(state, moment, DueItem(account, Lane.NORMAL, serial, DueFor.SCHEDULE))


def _waits(state: ShardState, schedule: Schedule) -> bool:
    """Its time has not come. A call that waits longer than any may was planned by a wrong clock that was set back."""
    limits, wait_ms = state.shard.limits, schedule.next_at - state.now
    if schedule.state is PROCESSING:
        return 0 < wait_ms <= max(limits.call_patience_ms, limits.retry_after_ms, longest_ms(WEBHOOKS))
    return wait_ms > 0


# --- into a conversation ----------------------------------------------------------------------


def _fire(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    row = state.accounts.rows[account]
    if row is None or schedule.by not in row.devices:
        look_at_end(state, account, serial)
        end(state, account, serial, schedule, FAILED, "device_removed")
        return
    change_state(state, account, serial, schedule, PROCESSING)
    s, content = schedule, schedule.content
    s.first_attempt, s.last_attempt, s.next_at = s.first_attempt or state.now, state.now, 0
    if isinstance(s.target, PairTarget):
        assert isinstance(content, PairContent)
        state.tell(s.target.to, Fired(serial, s.by, s.target.to, s.id, s.tag, s.kind, s.life_ms, content))
    else:
        assert isinstance(s.target, GroupTarget)
        assert isinstance(content, GroupContent)
        state.tell(s.target.group, GroupFired(serial, s.by, s.target.group, s.id, s.tag, s.kind, s.life_ms, content))


# --- to a webhook -----------------------------------------------------------------------------


def call(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    """Have the present attempt called out; and again, if nobody says what became of it."""
    s, content = schedule, schedule.content
    assert isinstance(content, CallContent)
    assert isinstance(schedule.target, CallTarget)
    s.is_calling, s.first_attempt, s.last_attempt = True, s.first_attempt or state.now, state.now
    s.next_at = state.now + state.shard.limits.call_patience_ms
    change_state(state, account, serial, schedule, PROCESSING)
    look_again(state, account, serial)
    state.effects.append(
        Call(account, serial, s.attempt, s.id, schedule.target.url, content.content_type, content.content)
    )


# --- the account is closed --------------------------------------------------------------------


def needs_ended(state: ShardState, _by: int, ended: SchedulesEnded) -> list[Need]:
    account = ended.account
    missing: list[Need] = []
    missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing)
    if not missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, ended.page, missing):
        for serial in _pending(state, ended):
            needs_change(state, account, serial, missing)
    return missing


def step_ended(state: ShardState, _by: int, _via: int, ended: SchedulesEnded) -> None:
    """What waits is cancelled. What is on its way goes on."""
    account = ended.account
    for serial in _pending(state, ended):
        if schedule := state.schedules[account, serial]:
            end(state, account, serial, schedule, ScheduleState.CANCELLED, "account_closed")
    own = state.account_schedules[account] or AccountSchedules()
    if ended.page < own.last // PAGE_STATES:
        state.derived.append(SchedulesEnded(account, max(ended.page + 1, own.first // PAGE_STATES)))


def _pending(state: ShardState, ended: SchedulesEnded) -> list[int]:
    states = (state.schedule_pages[ended.account, ended.page] or SchedulePage()).states
    return [ended.page * PAGE_STATES + place for place, present in enumerate(states) if present == PENDING]


STEPS: Steps = {
    5: {
        ScheduleLooked: (needs_looked, step_looked),
        SchedulesEnded: (needs_ended, step_ended),
    }
}
OPTIMISTIC = {ScheduleLooked}
