"""What became of a push: repeat it now and then, try it again, give it up, or forget the token.

Knows:   the device's token and mailbox, and the dead letter of a push that was given up.
Touches: those, the due rows, and the pages that list letters.

An outcome counts for the present attempt of the present wake, and once. That a token is gone counts for that token
only: a device that has set another one meanwhile keeps it.
"""

from __future__ import annotations

from nightmail.core import due, waking
from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters.settled import needs_settle, settle
from nightmail.core.retries import CALLS_OUT, delay_ms
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done
from nightmail.model.effects import Answer, Wake
from nightmail.model.letter_rows import DeadLetter, LetterStatus
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushTarget
from nightmail.model.records import NOT_SET_UP, LetterExpired, Pushed, PushOutcome
from nightmail.model.rows import Kept, Mailbox, Need

from .reading import attempt_of, needs_wake
from .tokens import remove

DELIVERED, GONE = PushOutcome.DELIVERED, PushOutcome.GONE


def needs_pushed(state: ShardState, _by: int, pushed: Pushed) -> list[Need]:
    missing: list[Need] = []
    mailbox = needs_wake(state, pushed.device, missing)
    if mailbox is None:
        return missing
    target = state.pushes.there(pushed.device)
    if pushed.set_at != target.since:
        return missing
    if target.letter:
        needs_settle(state, target.letter, missing)
    if pushed.outcome is not GONE and _counts(mailbox, target, pushed):
        if moment := _moment(state, _next_at(state, target, pushed)):
            due.needs_schedule(state, moment, 1, missing)
        if _is_buried(pushed, target):
            offset = state.offset + 1  # Of the record whose needs are asked for.
            missing_row(state.dead_letters, Kept.DEAD_LETTER, offset, missing)
            letter_pages.needs_add(state, offset, _error_class(pushed), missing)
    return missing


def step_pushed(state: ShardState, _by: int, via: int, pushed: Pushed) -> None:
    device = pushed.device
    mailbox = state.mailboxes[device]
    if mailbox is not None and mailbox.push:
        target = state.pushes.there(device)
        if pushed.set_at == target.since:
            if pushed.outcome is GONE:
                _settle(state, target, LetterStatus.DISCARDED)
                remove(state, device)
            elif _counts(mailbox, target, pushed):
                _count(state, device, mailbox, target, pushed)
    state.effects.append(Answer(via, Done()))


def _counts(mailbox: Mailbox, target: PushTarget, pushed: Pushed) -> bool:
    return pushed.woke_at == mailbox.woke_at and pushed.attempt == attempt_of(mailbox, target)


def _is_given_up(pushed: Pushed, target: PushTarget) -> bool:
    if pushed.outcome is PushOutcome.REFUSED:
        return True
    return pushed.outcome is PushOutcome.FAILED and _delay_ms(target, pushed) is None


def _is_buried(pushed: Pushed, target: PushTarget) -> bool:
    return _is_given_up(pushed, target) and not target.letter and pushed.error != NOT_SET_UP


def _delay_ms(target: PushTarget, pushed: Pushed) -> int | None:
    retries = target.retries if target.woke_at == pushed.woke_at else 0
    return delay_ms(CALLS_OUT, f"{pushed.device:x} {pushed.woke_at}", retries + 1)


def _next_at(state: ShardState, target: PushTarget, pushed: Pushed) -> int:
    """When the next push is to be asked for, by elapsed time; 0: never for this wake."""
    if pushed.outcome is PushOutcome.FAILED and (delay := _delay_ms(target, pushed)) is not None:
        return state.elapsed + max(delay, min(pushed.retry_after_ms, state.shard.limits.retry_after_ms))
    is_first = target.woke_at != pushed.woke_at or not target.first_at
    return _repeat_at(state.shard.limits, state.elapsed if is_first else target.first_at, state.elapsed)


def _repeat_at(limits: FoldLimits, first_at: int, elapsed: int) -> int:
    """The next of the three times at which it is pushed again; 0: all have passed."""
    times = (limits.wake_again_ms, limits.wake_second_ms, limits.wake_third_ms)
    return min((first_at + ms for ms in times if ms and first_at + ms > elapsed), default=0)


def _moment(state: ShardState, next_at: int) -> int:
    return waking.moment_at(state, next_at) if next_at else 0


def _count(state: ShardState, device: int, mailbox: Mailbox, target: PushTarget, pushed: Pushed) -> None:
    next_at, gives_up, is_buried = (
        _next_at(state, target, pushed), _is_given_up(pushed, target), _is_buried(pushed, target)
    )  # fmt: skip
    if target.woke_at != pushed.woke_at:
        target.woke_at = pushed.woke_at
        target.attempt = target.first_at = target.retries = 0
    is_over = pushed.outcome is DELIVERED or gives_up
    if not target.retries:
        target.first_attempt = state.now
    target.attempt += 1
    target.last_attempt = state.now
    if is_buried:
        _bury(state, target, pushed)
    if is_over:
        target.first_at = target.first_at or state.elapsed
        target.retries = 0
    else:
        target.retries += 1
    if pushed.outcome is DELIVERED:
        _settle(state, target, LetterStatus.DELIVERED)
    target.next_at = next_at
    state.pushes.put(device, target, state.offset)
    if moment := _moment(state, next_at):
        waking.plan(state, device, mailbox, moment)
    else:
        mailbox.wake_due = 0
    state.mailboxes.put(device, mailbox, state.offset)


# --- given up -----------------------------------------------------------------------------------


def _error_class(pushed: Pushed) -> str:
    return f"push {pushed.error}"


def _bury(state: ShardState, target: PushTarget, pushed: Pushed) -> None:
    """A letter about the wake: what waits for the device waits on, and is pushed again when a repeat is due."""
    error = _error_class(pushed)
    page = letter_pages.add(state, state.offset, error)
    letter = DeadLetter(
        b"", [error], state.now, page, retry_count=target.retries, first_attempt=target.first_attempt,
        last_attempt=target.last_attempt, fold=state.shard.fold, device=pushed.device,
    )  # fmt: skip
    state.dead_letters.put(state.offset, letter, state.offset)
    state.shard.dead += 1
    target.letter = state.offset
    state.derived.append(LetterExpired(state.offset, due.planned_now(state)))


def _settle(state: ShardState, target: PushTarget, status: LetterStatus) -> None:
    if target.letter:
        settle(state, target.letter, status)
        target.letter = 0


# --- an operator settles it ---------------------------------------------------------------------


def needs_letter_ending(state: ShardState, device: int, missing: list[Need]) -> None:
    missing_row(state.pushes, Kept.PUSH, device, missing)


def end_letter(state: ShardState, device: int, offset: int, *, replay: bool) -> None:
    """The caller settles the letter. A replay asks for a push at once, if something waits still."""
    target = state.pushes[device]
    if target is None:
        return
    if target.letter == offset:
        target.letter = 0
    if replay:
        target.next_at = state.elapsed
        state.effects.append(Wake(device))
    state.pushes.put(device, target, state.offset)


STEPS: Steps = {6: {Pushed: (needs_pushed, step_pushed)}}
