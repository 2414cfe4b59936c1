"""How dead letters end since fold 5: replayed, discarded, or by time; and later forgotten.

Knows:   one letter, and what it is about: a message, a call, or a push.
Touches: the letter, the pages and due rows; of a message the recipient's mailboxes; of a call its schedule.

A letter is settled in the same step that delivers what it is about, hence once. Its due item is there since it was
buried, and only says *look*: a letter that waits ends then, a settled one is forgotten when it was shown for 30 days.
"""

from __future__ import annotations

from nightmail.core import due, send
from nightmail.core.groups.replaying import needs_replayed, replay
from nightmail.core.late_filing import file_late
from nightmail.core.pushes.outcomes import end_letter, needs_letter_ending
from nightmail.core.rules import Steps, needs_nothing
from nightmail.core.schedules.keeping import forget_later, needs_change
from nightmail.core.schedules.looking import call
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done
from nightmail.model.effects import Answer
from nightmail.model.letter_rows import DeadLetter, LetterStatus
from nightmail.model.records import Discarded, LetterExpired, LettersSettled, Replayed, Sent
from nightmail.model.refusals import AnyRefusal, LetterSettled, NotReplayable, UnknownLetter
from nightmail.model.rows import DueFor, DueItem, Kept, Need
from nightmail.model.words import Lane, Reason

from . import pages as letter_pages
from .burying import AUDIT_MS, copies_of, message_in, tell_failed
from .seen import is_replayable
from .settled import settle

WAITING = LetterStatus.WAITING

# --- by an operator ---------------------------------------------------------------------------


def needs_ending(state: ShardState, _by: int, ending: Replayed | Discarded) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.dead_letters, Kept.DEAD_LETTER, ending.offset, missing) and (
        (letter := state.dead_letters[ending.offset]) and letter.status is WAITING
    ):
        _needs_content(state, letter, missing)
    return missing


def _needs_content(state: ShardState, letter: DeadLetter, missing: list[Need]) -> None:
    if letter.device:
        needs_letter_ending(state, letter.device, missing)
    elif letter.serial:
        needs_change(state, letter.account, letter.serial, missing)
    elif letter.stamp:
        by, sent = message_in(letter)
        if isinstance(sent, Sent):
            missing += send.needs_sent(state, by, sent)
        else:
            needs_replayed(state, sent, missing)


def step_replayed(state: ShardState, _by: int, via: int, replayed: Replayed) -> None:
    offset = replayed.offset
    letter = state.dead_letters[offset]
    refusal = _check(letter, offset)
    if refusal is None and letter is not None and not is_replayable(letter):
        refusal = NotReplayable(offset)
    if refusal is None:
        assert letter is not None
        if letter.device:
            end_letter(state, letter.device, offset, replay=True)
        elif letter.serial:
            _call_again(state, letter)
        else:
            by, sent = message_in(letter)
            if isinstance(sent, Sent):
                file_late(state, by, sent, letter.stamp, state.accounts[sent.to])
            elif replay(state, by, sent, letter):
                state.ledger.owed -= copies_of(sent)  # They are counted again where they are filed.
            else:
                state.ledger.fail(Reason.EXPIRED, tell_failed(state, letter))
        settle(state, offset, LetterStatus.REPLAYED)
    if via:
        state.effects.append(Answer(via, refusal or Done()))


def _call_again(state: ShardState, letter: DeadLetter) -> None:
    """With as many retries as in the beginning. Its attempts go on, so an outcome of before does not count."""
    schedule = state.schedules.there((letter.account, letter.serial))
    schedule.retry_count, schedule.ended_at, schedule.error, schedule.letter = 0, 0, "", 0
    schedule.attempt += 1
    call(state, letter.account, letter.serial, schedule)


def step_discarded(state: ShardState, _by: int, via: int, discarded: Discarded) -> None:
    letter = state.dead_letters[discarded.offset]
    refusal = _check(letter, discarded.offset)
    if refusal is None:
        assert letter is not None
        _give_up(state, discarded.offset, letter)
        settle(state, discarded.offset, LetterStatus.DISCARDED)
    if via:
        state.effects.append(Answer(via, refusal or Done()))


def _check(letter: DeadLetter | None, offset: int) -> AnyRefusal | None:
    if letter is None:
        return UnknownLetter(offset)
    return None if letter.status is WAITING else LetterSettled(offset)


def _give_up(state: ShardState, offset: int, letter: DeadLetter) -> None:
    """The sender of a message hears that it has failed; a call that has failed is forgotten in time."""
    if letter.device:
        end_letter(state, letter.device, offset, replay=False)
    elif letter.serial:
        key = letter.account, letter.serial
        schedule = state.schedules.there(key)
        schedule.letter, schedule.content = 0, None
        forget_later(state, *key, schedule)
    elif letter.stamp:
        state.ledger.fail(Reason.EXPIRED, tell_failed(state, letter))


def step_settled(state: ShardState, _by: int, via: int, settled: LettersSettled) -> None:
    """Each by a record of its own, so that one that cannot be applied stops no other."""
    kind = Replayed if settled.replay else Discarded
    state.derived.extend(kind(offset) for offset in dict.fromkeys(settled.offsets))
    state.effects.append(Answer(via, Done()))


# --- by time ----------------------------------------------------------------------------------


def needs_expired(state: ShardState, _by: int, expired: LetterExpired) -> list[Need]:
    missing: list[Need] = []
    if missing_row(state.dead_letters, Kept.DEAD_LETTER, expired.offset, missing):
        return missing
    letter = state.dead_letters[expired.offset]
    if letter is None:
        return missing
    moment = _waits_until(state, letter, expired.planned)
    if moment or letter.status is WAITING:
        due.needs_schedule(state, moment or _audited(state), 1, missing)
    if letter.status is WAITING:
        _needs_content(state, letter, missing)
    elif not moment and letter.page:
        letter_pages.needs_remove(state, letter.page, missing)
    return missing


def step_expired(state: ShardState, _by: int, _via: int, expired: LetterExpired) -> None:
    offset = expired.offset
    letter = state.dead_letters[offset]
    if letter is None:
        return
    moment = _waits_until(state, letter, expired.planned)
    if not moment:
        if letter.status is not WAITING:
            _forget(state, offset, letter)
            return
        _give_up(state, offset, letter)
        if _is_owed(letter):
            tell_failed(state, letter)
        settle(state, offset, LetterStatus.EXPIRED)
        moment = _audited(state)
    due.schedule(state, moment, DueItem(0, Lane.NORMAL, offset, DueFor.DEAD_LETTER, expired.planned))


def _is_owed(letter: DeadLetter) -> bool:
    """A message that an older fold buried and planned to fail: its sender waits for that."""
    return not letter.fold and not letter.serial and bool(letter.record)


def _waits_until(state: ShardState, letter: DeadLetter, planned: int) -> int:
    """The moment to look again; 0: a waiting letter has failed now, or a settled one is forgotten."""
    if letter.status is not WAITING:
        end = letter.settled_at + AUDIT_MS
        return due.moment_of(state, end) if end > state.now else 0
    life_ms = state.shard.limits.dead_letters_ms
    if not life_ms:
        return _audited(state)
    return due.waits_until(state, planned, letter.at, life_ms)


def _audited(state: ShardState) -> int:
    """The moment at which a letter that is settled now was listed for long enough."""
    return due.moment_of(state, state.now + AUDIT_MS)


def _forget(state: ShardState, offset: int, letter: DeadLetter) -> None:
    if letter.status is LetterStatus.DISCARDED and _is_owed(letter):
        tell_failed(state, letter)
    if letter.page:
        letter_pages.remove(state, letter.page, offset)
    state.dead_letters.put(offset, None, state.offset)


STEPS: Steps = {
    5: {
        Replayed: (needs_ending, step_replayed),
        Discarded: (needs_ending, step_discarded),
        LettersSettled: (needs_nothing, step_settled),
        LetterExpired: (needs_expired, step_expired),
    }
}
