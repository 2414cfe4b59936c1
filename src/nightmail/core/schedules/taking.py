"""What people say about messages for later: schedule, seal again, cancel.

Knows:   one account and its schedules.
Touches: those rows.

Each is safe to repeat: a client that lost the answer asks again, and gets the same one.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.rights import check_rights
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.answers import Done, Said, ScheduleTaken
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import CallScheduled, Resealed, ScheduleCancelled, Scheduled
from nightmail.model.refusals import (
    AlreadyEnded,
    AlreadySent,
    AnyRefusal,
    IdReused,
    InProgress,
    KeyReused,
    Malformed,
    SchedulesFull,
    TimePast,
    TooFarOff,
    TooManySchedules,
    UnknownSchedule,
)
from nightmail.model.rows import Kept, Need
from nightmail.model.schedule_rows import (
    PAGE_STATES,
    AccountSchedules,
    CallContent,
    CallTarget,
    GroupContent,
    PairContent,
    Schedule,
    ScheduleName,
    SchedulePage,
    ScheduleState,
    device_and_sequence,
    id_number,
    key_number,
    number_of,
)
from nightmail.model.words import Kind

from .keeping import PAST_MS, end, find, look_again, needs_named
from .looking import plan_look

# --- scheduling -------------------------------------------------------------------------------


def needs_taken(state: ShardState, by: int, wish: Scheduled | CallScheduled) -> list[Need]:
    account = wish.home(by)
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account, missing)
    if not missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing):
        own = state.account_schedules[account] or AccountSchedules()
        if not _has_new_page(own):
            missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, (own.last + 1) // PAGE_STATES, missing)
        for number in _names(own, wish):
            if not missing_pair(state.schedule_names, Kept.SCHEDULE_NAME, account, number, missing) and (
                name := state.schedule_names[account, number]
            ):
                missing_pair(state.schedules, Kept.SCHEDULE, account, name.serial, missing)
    if wish.deliver_at > state.now:
        due.needs_schedule(state, due.moment_of(state, wish.deliver_at), 1, missing)
    return missing


def _names(own: AccountSchedules, wish: Scheduled | CallScheduled) -> list[int]:
    """The names of a wish that another schedule may have."""
    names = [] if _is_new(own, *device_and_sequence(wish.id)) else [id_number(wish.id)]
    if isinstance(wish, CallScheduled) and wish.key:
        names.append(key_number(wish.key))
    return names


def _is_new(own: AccountSchedules, index: int, sequence: int) -> bool:
    """No schedule that is kept has an id with this sequence of a device: so nobody need look for it."""
    return sequence > own.sequences.get(index, -1)


def _has_new_page(own: AccountSchedules) -> bool:
    """Whether the next serial opens a page."""
    return not own.last or not (own.last + 1) % PAGE_STATES


def step_scheduled(state: ShardState, by: int, via: int, wish: Scheduled) -> None:
    account, content = account_of(by), wish.content
    schedule = Schedule(
        wish.id, by, wish.tag, wish.kind, wish.life_ms, wish.target, state.now, wish.deliver_at, size_of(content),
        content,
    )  # fmt: skip
    state.effects.append(Answer(via, _take(state, by, account, schedule, "")))


def step_call_scheduled(state: ShardState, by: int, via: int, wish: CallScheduled) -> None:
    schedule = Schedule(
        wish.id, SERVER, wish.tag, Kind.TEXT, 0, CallTarget(wish.url), state.now, wish.deliver_at, len(wish.content),
        CallContent(wish.content_type, wish.content),
    )  # fmt: skip
    state.effects.append(Answer(via, _take(state, by, wish.account, schedule, wish.key)))


def _take(state: ShardState, by: int, account: int, schedule: Schedule, key: str) -> Said:
    """Every row is looked at before the first is changed."""
    row, own = state.accounts.rows[account], state.account_schedules.rows[account] or AccountSchedules()
    serial = own.last + 1
    page_key = account, serial // PAGE_STATES
    page = SchedulePage() if (opens := _has_new_page(own)) else state.schedule_pages.there(page_key)
    index, sequence = device_and_sequence(schedule.id)
    number, is_new = number_of(schedule.id, index, sequence), _is_new(own, index, sequence)
    said = (
        check_rights(by, row, account)
        or (_taken_before(state, account, key_number(key), key, schedule) if key else None)
        or (None if is_new else _taken_before(state, account, number, schedule.id, schedule))
        or _check(state, own, schedule)
    )
    if said is not None:
        return said
    schedule.next_at = schedule.deliver_at
    if schedule.next_at > state.now:
        plan_look(state, account, serial, schedule)
    else:
        look_again(state, account, serial)
    own.sequences[index] = max(sequence, own.sequences.get(index, 0))
    _begin(state, account, serial, own, schedule)
    page.states[serial % PAGE_STATES] = schedule.state
    put_page = state.schedule_pages.add if opens else state.schedule_pages.put
    put_page(page_key, page, state.offset)
    put_name = state.schedule_names.add if is_new else state.schedule_names.put
    put_name((account, number), ScheduleName(schedule.id, serial), state.offset)
    if key:
        schedule.key = key_number(key)
        state.schedule_names.put((account, schedule.key), ScheduleName(key, serial), state.offset)
    return ScheduleTaken(schedule.id, serial, schedule.deliver_at)


def _begin(state: ShardState, account: int, serial: int, own: AccountSchedules, schedule: Schedule) -> None:
    """It takes the account's next serial, and is counted."""
    own.last = serial
    own.open += 1
    own.bytes += schedule.size
    own.calls += isinstance(schedule.target, CallTarget)
    state.account_schedules.put(account, own, state.offset)
    state.schedules.add((account, serial), schedule, state.offset)


def _taken_before(state: ShardState, account: int, number: int, text: str, schedule: Schedule) -> Said | None:
    """The answer that a name of the schedule was given before."""
    name = state.schedule_names[account, number]
    if name is None:
        return None
    before = state.schedules[account, name.serial]
    if name.name != text or before is None or before.tag != schedule.tag:
        return IdReused(schedule.id) if text == schedule.id else KeyReused()
    return ScheduleTaken(before.id, name.serial, before.deliver_at)


def _check(state: ShardState, own: AccountSchedules, schedule: Schedule) -> AnyRefusal | None:
    limits = state.shard.limits
    is_call = isinstance(schedule.target, CallTarget)
    ahead_ms = limits.call_ahead_ms if is_call else limits.schedule_ahead_ms
    if schedule.deliver_at < state.now - PAST_MS:
        return TimePast(state.now)
    if schedule.deliver_at > state.now + ahead_ms:
        return TooFarOff(ahead_ms)
    if own.open >= limits.schedules:
        return TooManySchedules(limits.schedules)
    if is_call and own.calls >= limits.schedule_calls:
        return TooManySchedules(limits.schedule_calls)
    if own.bytes + schedule.size > limits.schedule_bytes:
        return SchedulesFull(limits.schedule_bytes)
    return None


def size_of(content: PairContent | GroupContent) -> int:
    if isinstance(content, GroupContent):
        return len(content.ciphertext)
    size = 0
    for envelope in content.envelopes:
        size += len(envelope.ciphertext)
    for envelope in content.own_envelopes:
        size += len(envelope.ciphertext)
    return size


# --- sealing again ----------------------------------------------------------------------------


def needs_resealed(state: ShardState, by: int, resealed: Resealed) -> list[Need]:
    missing: list[Need] = []
    needs_named(state, account_of(by), resealed.id, missing)
    return missing


def step_resealed(state: ShardState, by: int, via: int, resealed: Resealed) -> None:
    """Replace what was sealed. If its time has come, it fires at once."""
    account = account_of(by)
    said: Said | None = check_rights(by, state.accounts[account], account)
    found = find(state, account, resealed.id) if said is None else None
    if said is None and found is None:
        said = UnknownSchedule(resealed.id)
    if found is not None:
        serial, schedule = found
        said = _check_open(schedule) or _replace(state, by, account, serial, schedule, resealed.content)
    assert said is not None
    state.effects.append(Answer(via, said))


def _check_open(schedule: Schedule) -> AnyRefusal | None:
    """Only what is PENDING can be changed."""
    match schedule.state:
        case ScheduleState.PENDING:
            return None
        case ScheduleState.PROCESSING:
            return InProgress(schedule.id)
        case ScheduleState.DELIVERED:
            return AlreadySent(schedule.id)
        case ScheduleState.CANCELLED | ScheduleState.FAILED:
            return AlreadyEnded(schedule.id)


def _replace(
    state: ShardState, by: int, account: int, serial: int, schedule: Schedule, content: PairContent | GroupContent
) -> Said:
    if type(schedule.content) is not type(content):
        return Malformed("it is sealed for another kind of conversation")
    own = state.account_schedules.there(account)
    own.bytes += size_of(content) - schedule.size
    state.account_schedules.put(account, own, state.offset)
    schedule.content, schedule.by, schedule.size = content, by, size_of(content)
    if schedule.is_stale:
        schedule.is_stale, schedule.next_at = False, schedule.deliver_at
        look_again(state, account, serial)
    state.schedules.put((account, serial), schedule, state.offset)
    return ScheduleTaken(schedule.id, serial, schedule.deliver_at)


# --- cancelling -------------------------------------------------------------------------------


def needs_cancelled(state: ShardState, _by: int, cancelled: ScheduleCancelled) -> list[Need]:
    missing: list[Need] = []
    needs_named(state, cancelled.account, cancelled.id, missing)
    return missing


def step_cancelled(state: ShardState, by: int, via: int, cancelled: ScheduleCancelled) -> None:
    account = cancelled.account
    said: Said | None = check_rights(by, state.accounts[account], account)
    found = find(state, account, cancelled.id) if said is None else None
    if said is None and found is None:
        said = UnknownSchedule(cancelled.id)
    if found is not None:
        serial, schedule = found
        if schedule.state is ScheduleState.CANCELLED:
            said = Done()
        elif (said := _check_open(schedule)) is None:
            end(state, account, serial, schedule, ScheduleState.CANCELLED)
            said = Done()
    assert said is not None
    state.effects.append(Answer(via, said))


STEPS: Steps = {
    5: {
        Scheduled: (needs_taken, step_scheduled),
        CallScheduled: (needs_taken, step_call_scheduled),
        Resealed: (needs_resealed, step_resealed),
        ScheduleCancelled: (needs_cancelled, step_cancelled),
    }
}
OPTIMISTIC = {Scheduled, CallScheduled}
