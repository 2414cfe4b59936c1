"""The rows of one schedule, changed together: its state, its content, the page that lists it, what is open in all.

Knows:   one account's schedules.
Touches: those rows, and the receipts of the account's devices, by which they learn that something has changed.

A change says when the schedule is to be looked at next (`next_at`); `looking.py` plans that, so only there due rows
are needed.
"""

from __future__ import annotations

from nightmail.core.receipts import note
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Receipted, ScheduleLooked
from nightmail.model.rows import Kept, Need, PendingReceipt
from nightmail.model.schedule_rows import (
    NO_STATE,
    PAGE_STATES,
    AccountSchedules,
    CallTarget,
    Schedule,
    SchedulePage,
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

# --- what must be in memory -------------------------------------------------------------------


def needs_change(state: ShardState, account: int, serial: int, missing: list[Need]) -> Schedule | None:
    """What `change_state` will touch. Returns the schedule, if it is in memory and not forgotten."""
    needs_hearers(state, account, missing)
    missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing)
    missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, serial // PAGE_STATES, missing)
    missing_pair(state.schedule_contents, Kept.SCHEDULE_CONTENT, account, serial, missing)
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


# --- changing ---------------------------------------------------------------------------------


def change_state(state: ShardState, account: int, serial: int, schedule: Schedule, new: ScheduleState) -> None:
    """Give a schedule another state, and have it looked at when `next_at` says."""
    before, schedule.state = schedule.state, new
    if before.is_open is not new.is_open:
        _count(state, account, schedule, 1 if new.is_open else -1)
    state.schedules.put((account, serial), schedule, state.offset)
    _mark(state, account, serial, new)
    if schedule.next_at:
        state.derived.append(ScheduleLooked(account, serial))


def end(state: ShardState, account: int, serial: int, schedule: Schedule, new: ScheduleState, error: str = "") -> None:
    """Final. The content goes, and the account's devices learn it."""
    schedule.ended_at, schedule.error = state.now, error
    schedule.is_stale = schedule.is_calling = False
    schedule.next_at = forgotten_at(state, schedule)
    drop_content(state, account, serial)
    change_state(state, account, serial, schedule, new)
    tell_news(state, account, serial)


def forgotten_at(state: ShardState, schedule: Schedule) -> int:
    """Until then it is shown; and not before a request that is repeated would be refused as too late.

    What went into a conversation is kept as long as messages are: a device that was away learns the outcome.
    """
    limits = state.shard.limits
    is_call = isinstance(schedule.target, CallTarget)
    kept_ms = limits.schedules_kept_ms if is_call else max(limits.schedules_kept_ms, min(limits.ttl_ms, KEPT_MS))
    return max(state.now + kept_ms, schedule.deliver_at + PAST_MS + 1)


def drop_content(state: ShardState, account: int, serial: int) -> None:
    if state.schedule_contents[account, serial] is not None:
        state.schedule_contents.put((account, serial), None, state.offset)


def _count(state: ShardState, account: int, schedule: Schedule, sign: int) -> None:
    own = state.account_schedules[account] or AccountSchedules()
    own.open += sign
    own.bytes += sign * schedule.size
    own.calls += sign * isinstance(schedule.target, CallTarget)
    state.account_schedules.put(account, own, state.offset)


def _mark(state: ShardState, account: int, serial: int, new: int) -> None:
    page = state.schedule_pages[account, serial // PAGE_STATES] or SchedulePage()
    page.states[serial % PAGE_STATES] = new
    state.schedule_pages.put((account, serial // PAGE_STATES), page, state.offset)


def begin(state: ShardState, account: int, schedule: Schedule) -> int:
    """A new schedule: it takes the account's next serial, and is looked at at its time."""
    own = state.account_schedules[account] or AccountSchedules()
    own.last = serial = own.last + 1
    state.account_schedules.put(account, own, state.offset)
    _count(state, account, schedule, 1)
    schedule.next_at = schedule.deliver_at
    change_state(state, account, serial, schedule, ScheduleState.PENDING)
    return serial


def forget(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    """It was shown for long enough. Its names go, too, and a page that lists nothing any more."""
    state.schedules.put((account, serial), None, state.offset)
    state.schedule_names.put((account, id_number(schedule.id)), None, state.offset)
    if schedule.key:
        state.schedule_names.put((account, schedule.key), None, state.offset)
    _mark(state, account, serial, NO_STATE)
    number, own = serial // PAGE_STATES, state.account_schedules[account] or AccountSchedules()
    page = state.schedule_pages.there((account, number))
    if number < own.last // PAGE_STATES and not any(page.states):
        state.schedule_pages.put((account, number), None, state.offset)
        if own.first // PAGE_STATES == number:
            own.first = (number + 1) * PAGE_STATES
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
