"""What became of a schedule that was fired or called out.

Knows:   one schedule, and its dead letter.
Touches: its rows, and where a call has failed for good, the pages that list letters.

A failure counts only for the present attempt, and once. A success counts whenever it is heard.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters.settled import needs_settle, settle
from nightmail.core.retries import WEBHOOKS, delay_ms
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done
from nightmail.model.effects import Answer
from nightmail.model.letter_rows import DeadLetter, LetterStatus
from nightmail.model.records import CallEnded, CallOutcome, Copied, FiringOutcome, FiringSettled, LetterExpired
from nightmail.model.rows import Kept, Need
from nightmail.model.schedule_rows import CallTarget, PairContent, PairTarget, Schedule, ScheduleState
from nightmail.model.words import Lane

from .keeping import change_state, end, look_again, look_at_end, needs_change, tell_news

PROCESSING, DELIVERED, FAILED = ScheduleState.PROCESSING, ScheduleState.DELIVERED, ScheduleState.FAILED

# --- from a conversation ----------------------------------------------------------------------


def needs_firing_settled(state: ShardState, _by: int, settled: FiringSettled) -> list[Need]:
    missing: list[Need] = []
    needs_change(state, settled.account, settled.serial, missing)
    return missing


def step_firing_settled(state: ShardState, _by: int, _via: int, settled: FiringSettled) -> None:
    account, serial = settled.account, settled.serial
    schedule = look_at_end(state, account, serial)
    assert schedule is not None
    assert schedule.state is PROCESSING, schedule.state
    if settled.outcome is FiringOutcome.FILED:
        schedule.n, schedule.at, schedule.group_seq = settled.n, settled.at, settled.group_seq
        _miss_copies(state, account, schedule)
        end(state, account, serial, schedule, DELIVERED)
    elif settled.outcome is FiringOutcome.REFUSED:
        end(state, account, serial, schedule, FAILED, settled.error)
    else:
        _wait_for_reseal(state, account, serial, schedule)


def _miss_copies(state: ShardState, account: int, schedule: Schedule) -> None:
    """Where it was sealed for no device of the author's own, and there are some by now, the author hears of each."""
    row, target, content = state.accounts.rows[account], schedule.target, schedule.content
    if row is None or not isinstance(target, PairTarget) or target.to == account:
        return
    assert isinstance(content, PairContent)
    if not content.own_envelopes and any(device != schedule.by for device in row.listed):
        s = schedule
        state.ledger.carried += 1
        state.derived.append(Copied(s.by, target.to, Lane.NORMAL, s.n, s.id, s.tag, s.kind, None, s.life_ms, s.at, ()))


def _wait_for_reseal(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    """The author's devices are asked to seal it again. It can be cancelled all the while."""
    schedule.is_stale = True
    schedule.retry_count += 1
    schedule.next_at = schedule.deliver_at + state.shard.limits.reseal_ms
    change_state(state, account, serial, schedule, ScheduleState.PENDING)
    look_again(state, account, serial)
    tell_news(state, account, serial)


# --- from a webhook ---------------------------------------------------------------------------


def needs_call_ended(state: ShardState, _by: int, ended: CallEnded) -> list[Need]:
    missing: list[Need] = []
    schedule = needs_change(state, ended.account, ended.serial, missing)
    if schedule is None:
        return missing
    if schedule.letter:
        needs_settle(state, schedule.letter, missing)
    if ended.outcome is not CallOutcome.DELIVERED and _counts(schedule, ended) and not _delay_ms(schedule, ended):
        missing_row(state.dead_letters, Kept.DEAD_LETTER, _next_offset(state), missing)
        letter_pages.needs_add(state, _next_offset(state), _error_class(ended), missing)
    return missing


def _next_offset(state: ShardState) -> int:
    """Of the record whose needs are asked for."""
    return state.offset + 1


def step_call_ended(state: ShardState, _by: int, via: int, ended: CallEnded) -> None:
    account, serial = ended.account, ended.serial
    schedule = state.schedules[account, serial]
    if schedule is not None and isinstance(schedule.target, CallTarget):
        if ended.outcome is CallOutcome.DELIVERED:
            _delivered(state, account, serial, schedule)
        elif _counts(schedule, ended):
            _failed(state, ended, schedule)
    state.effects.append(Answer(via, Done()))


def _counts(schedule: Schedule, ended: CallEnded) -> bool:
    return schedule.state is PROCESSING and schedule.is_calling and ended.attempt == schedule.attempt


def _delay_ms(schedule: Schedule, ended: CallEnded) -> int | None:
    if ended.outcome is CallOutcome.REFUSED:
        return None
    return delay_ms(WEBHOOKS, schedule.id, schedule.retry_count + 1)


def _delivered(state: ShardState, account: int, serial: int, schedule: Schedule) -> None:
    """Also where FAILED was said: it is so, after all."""
    if schedule.state not in (PROCESSING, FAILED):
        return
    if schedule.state is FAILED and schedule.letter:
        settle(state, schedule.letter, LetterStatus.DELIVERED)
    schedule.letter = 0
    end(state, account, serial, schedule, DELIVERED)


def _failed(state: ShardState, ended: CallEnded, schedule: Schedule) -> None:
    account, serial = ended.account, ended.serial
    schedule.is_calling, schedule.error = False, ended.error
    delay = _delay_ms(schedule, ended)
    if delay is not None:
        schedule.retry_count += 1
        asked_ms = min(ended.retry_after_ms, state.shard.limits.retry_after_ms)
        schedule.next_at = state.now + max(delay, asked_ms)
        change_state(state, account, serial, schedule, PROCESSING)
        look_again(state, account, serial)
        return
    _bury(state, ended, schedule)
    # It is shown as long as its letter waits; its content waits with it.
    schedule.ended_at, schedule.next_at, schedule.letter = state.now, 0, state.offset
    change_state(state, account, serial, schedule, FAILED)
    tell_news(state, account, serial)


def _error_class(ended: CallEnded) -> str:
    return f"webhook {ended.error}"


def _bury(state: ShardState, ended: CallEnded, schedule: Schedule) -> None:
    error = _error_class(ended)
    page = letter_pages.add(state, state.offset, error)
    letter = DeadLetter(
        b"", [error], state.now, page, account=ended.account, serial=ended.serial, retry_count=schedule.retry_count,
        first_attempt=schedule.first_attempt, last_attempt=schedule.last_attempt,
    )  # fmt: skip
    state.dead_letters.put(state.offset, letter, state.offset)
    state.shard.dead += 1
    state.derived.append(LetterExpired(state.offset, due.planned_now(state)))


STEPS: Steps = {
    5: {
        FiringSettled: (needs_firing_settled, step_firing_settled),
        CallEnded: (needs_call_ended, step_call_ended),
    }
}
OPTIMISTIC = {FiringSettled}
