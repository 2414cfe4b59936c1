"""Schedules that have ended are shown for a while. Then they are forgotten, a page at a time.

Knows:   one page of an account's schedules, and those that have ended.
Touches: their rows and names, the page, and the due rows.

A page has one due item however many of its schedules have ended: an item for each would cost as much as firing.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.records import SchedulesSwept
from nightmail.model.rows import DueFor, DueItem, Kept, Need
from nightmail.model.schedule_rows import (
    NO_STATE,
    PAGE_STATES,
    AccountSchedules,
    Schedule,
    SchedulePage,
    ScheduleState,
    id_number,
)
from nightmail.model.words import Lane

from .keeping import SWEEP_MS


def needs_swept(state: ShardState, _by: int, swept: SchedulesSwept) -> list[Need]:
    account, missing = swept.account, list[Need]()
    if missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, swept.page, missing):
        return missing
    page = state.schedule_pages[account, swept.page]
    if page is None or page.sweep_at != swept.at:
        return missing
    if swept.at > state.now:
        due.needs_schedule(state, due.moment_of(state, swept.at), 1, missing)
        return missing
    missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing)
    for serial in _ended(page, swept.page):
        if not missing_pair(state.schedules, Kept.SCHEDULE, account, serial, missing) and (
            (schedule := state.schedules[account, serial]) and _is_over(state, schedule)
        ):
            for number in _names(schedule):
                missing_pair(state.schedule_names, Kept.SCHEDULE_NAME, account, number, missing)
    return missing


def step_swept(state: ShardState, _by: int, _via: int, swept: SchedulesSwept) -> None:
    account = swept.account
    page = state.schedule_pages[account, swept.page]
    if page is None or page.sweep_at != swept.at:
        return
    if swept.at > state.now:
        item = DueItem(account, Lane.NORMAL, swept.page, DueFor.SCHEDULE_PAGE, swept.at)
        due.schedule(state, due.moment_of(state, swept.at), item)
        return
    shown: list[int] = []
    for serial in _ended(page, swept.page):
        schedule = state.schedules.there((account, serial))
        if _is_over(state, schedule):
            _forget(state, account, serial, schedule)
            page.states[serial % PAGE_STATES] = NO_STATE
        elif schedule.next_at:
            shown.append(schedule.next_at)
    page.sweep_at = max(min(shown), state.now + SWEEP_MS) if shown else 0
    state.schedule_pages.put((account, swept.page), page, state.offset)
    if shown:
        state.derived.append(SchedulesSwept(account, swept.page, page.sweep_at))
    elif not any(page.states):
        _drop_page(state, account, swept.page)


def _ended(page: SchedulePage, number: int) -> list[int]:
    first = number * PAGE_STATES
    return [first + place for place, present in enumerate(page.states) if present >= ScheduleState.DELIVERED]


def _is_over(state: ShardState, schedule: Schedule) -> bool:
    return 0 < schedule.next_at <= state.now


def _names(schedule: Schedule) -> tuple[int, ...]:
    number = id_number(schedule.id)
    return (number, schedule.key) if schedule.key else (number,)


def _forget(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    state.schedules.put((account, serial), None, state.offset)
    for number in _names(schedule):
        state.schedule_names.put((account, number), None, state.offset)


def _drop_page(state: ShardState, account: int, number: int) -> None:
    """It lists nothing any more. The newest page stays: the next schedule is listed there."""
    own = state.account_schedules[account] or AccountSchedules()
    if number < own.last // PAGE_STATES:
        state.schedule_pages.put((account, number), None, state.offset)
        if own.first // PAGE_STATES == number:
            own.first = (number + 1) * PAGE_STATES
            state.account_schedules.put(account, own, state.offset)


STEPS: Steps = {5: {SchedulesSwept: (needs_swept, step_swept)}}
