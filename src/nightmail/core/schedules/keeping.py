"""The rows of one schedule, changed together: its state and content, the page that lists it, what is open in all.

Knows:   one account's schedules.
Touches: those rows, and the receipts of the account's devices, by which they learn that something has changed.

A change says when the schedule is to be looked at next (`next_at`) or forgotten; `looking.py` and `forgetting.py` plan
that, so only there due rows are needed.
"""

from __future__ import annotations

from nightmail.core.receipts import note
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Receipted, ScheduleLooked, SchedulesSwept
from nightmail.model.rows import Kept, Need, PendingReceipt
from nightmail.model.schedule_rows import (
    PAGE_STATES,
    AccountSchedules,
    CallTarget,
    Schedule,
    ScheduleState,
    id_number,
)
from nightmail.model.words import Lane, MessageState, Reason

NEWS_SPANS = 64
"""Beyond so many intervals neighbours become one: looking again at more than has changed is harmless."""

PAST_MS = 60_000
"""A request may be on its way, or be repeated, for so long: what was for now is still for now."""

KEPT_MS = 30 * DAY_MS
"""What went into a conversation is shown for so long at least, unless messages live shorter."""

SWEEP_MS = 3_600_000
"""A page is looked through once in this time: a schedule may be shown for so much longer than it must be."""

DELIVERED = ScheduleState.DELIVERED
"""This and whatever follows it is an end."""

# --- what must be in memory -------------------------------------------------------------------


def needs_change(state: ShardState, account: int, serial: int, missing: list[Need]) -> Schedule | None:
    """What `change_state` will touch. Returns the schedule, if it is in memory and not forgotten."""
    needs_hearers(state, account, missing)
    missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing)
    missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, serial // PAGE_STATES, missing)
    if missing_pair(state.schedules, Kept.SCHEDULE, account, serial, missing):
        return None
    return state.schedules[account, serial]


def needs_hearers(state: ShardState, account: int, missing: list[Need]) -> None:
    """The account, and the receipts of its devices."""
    if not missing_row(state.accounts, Kept.ACCOUNT, account, missing) and (row := state.accounts[account]):
        for device in row.devices:
            missing_row(state.receipts, Kept.RECEIPTS, device, missing)


def needs_named(state: ShardState, account: int, ident: str, missing: list[Need]) -> Schedule | None:
    """The schedule with this id, and what `change_state` will touch of it."""
    number = id_number(ident)
    if missing_pair(state.schedule_names, Kept.SCHEDULE_NAME, account, number, missing):
        missing_row(state.accounts, Kept.ACCOUNT, account, missing)
        return None
    name = state.schedule_names[account, number]
    if name is None or name.name != ident:
        missing_row(state.accounts, Kept.ACCOUNT, account, missing)
        return None
    return needs_change(state, account, name.serial, missing)


def find(state: ShardState, account: int, ident: str) -> tuple[int, Schedule] | None:
    name = state.schedule_names[account, id_number(ident)]
    if name is None or name.name != ident:
        return None
    schedule = state.schedules[account, name.serial]
    return (name.serial, schedule) if schedule else None


def look_at_end(state: ShardState, account: int, serial: int) -> Schedule | None:
    """The schedule. Raise KeyError unless everything that `end` will touch is in memory."""
    schedule, row = state.schedules.rows[account, serial], state.accounts.rows[account]
    state.account_schedules.rows[account]
    state.schedule_pages.rows[account, serial // PAGE_STATES]
    for device in row.devices if row else ():
        state.receipts.rows[device]
    return schedule


# --- changing ---------------------------------------------------------------------------------


def change_state(state: ShardState, account: int, serial: int, schedule: Schedule, new: ScheduleState) -> None:
    """Give a schedule another state."""
    page_key = account, serial // PAGE_STATES
    page = state.schedule_pages.rows[page_key]
    assert page is not None
    was_open, is_open = schedule.state < DELIVERED, new < DELIVERED
    if was_open is not is_open:
        _count(state, account, schedule, 1 if is_open else -1)
    schedule.state = page.states[serial % PAGE_STATES] = new
    state.schedules.changed[account, serial] = state.offset
    state.schedule_pages.changed[page_key] = state.offset


def look_again(state: ShardState, account: int, serial: int) -> None:
    """`next_at` has changed: have that planned."""
    state.derived.append(ScheduleLooked(account, serial))


def end(state: ShardState, account: int, serial: int, schedule: Schedule, new: ScheduleState, error: str = "") -> None:
    """Final. The content goes, and the account's devices learn it."""
    schedule.ended_at, schedule.error, schedule.content = state.now, error, None
    schedule.is_stale = schedule.is_calling = False
    change_state(state, account, serial, schedule, new)
    forget_later(state, account, serial, schedule)
    tell_news(state, account, serial)


def forget_later(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    """It has ended: have its page looked through when it was shown for long enough."""
    number = serial // PAGE_STATES
    page = state.schedule_pages.there((account, number))
    schedule.next_at = at = forgotten_at(state, schedule)
    state.schedules.changed[account, serial] = state.offset
    if not page.sweep_at or at < page.sweep_at - SWEEP_MS:
        page.sweep_at = at
        state.schedule_pages.changed[account, number] = state.offset
        state.derived.append(SchedulesSwept(account, number, at))


def forgotten_at(state: ShardState, schedule: Schedule) -> int:
    """Until then it is shown; and not before a request that is repeated would be refused as too late.

    What went into a conversation is kept as long as messages are: a device that was away learns the outcome.
    """
    limits = state.shard.limits
    is_call = isinstance(schedule.target, CallTarget)
    kept_ms = limits.schedules_kept_ms if is_call else max(limits.schedules_kept_ms, min(limits.ttl_ms, KEPT_MS))
    return max(state.now + kept_ms, schedule.deliver_at + PAST_MS + 1)


def _count(state: ShardState, account: int, schedule: Schedule, sign: int) -> None:
    own = state.account_schedules[account] or AccountSchedules()
    own.open += sign
    own.bytes += sign * schedule.size
    own.calls += sign * isinstance(schedule.target, CallTarget)
    state.account_schedules.put(account, own, state.offset)


# --- news -------------------------------------------------------------------------------------


def tell_news(state: ShardState, account: int, serial: int) -> None:
    """Have the account's devices look again at a schedule."""
    row = state.accounts[account]
    if row is None:
        return
    news = Receipted(
        SERVER, account, Lane.NORMAL, 0, MessageState.SENT, Reason.NONE, state.now, ((serial, serial),)
    )  # fmt: skip
    for device in row.devices:
        note(state, device, news)
        receipts = state.receipts.rows[device]
        assert receipts is not None
        _coarsen(receipts.items[SERVER, account, Lane.NORMAL, 0, MessageState.SENT, 0])


def _coarsen(pending: PendingReceipt) -> None:
    spans = pending.numbers
    if len(spans) > 2 * NEWS_SPANS:
        narrowest = min(range(1, len(spans) - 1, 2), key=lambda end: spans[end + 1] - spans[end])
        del spans[narrowest : narrowest + 2]
