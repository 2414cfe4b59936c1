"""A record that could not be applied: set aside, so that it blocks nothing and is not lost.

Knows:   the letter, and the stream of a message that was buried.
Touches: those two, the pages that list letters, and the due rows.

Since fold 2 a message that is buried takes its number all the same and is answered *sent*: it stays *sent* until
somebody settles the letter, or until time does (`LetterExpired`). A sender that heard no would void the number, and
then the letter could never be replayed.
"""

from __future__ import annotations

from nightmail.model.answers import Accepted, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import account_of
from nightmail.model.notes import Placed
from nightmail.model.records import AnyBody, LetterExpired, Receipted, Sent, Ticked, decode_record
from nightmail.model.refusals import DeadLettered
from nightmail.model.rows import DeadLetter, DueFor, DueItem, Kept, Need, Stream
from nightmail.model.words import Lane, MessageState, Reason

from . import due, letter_pages
from .numbering import answer_out_of_turn, needs_stream, take_number
from .rules import Steps
from .state import ShardState, missing_row


def needs_bury(state: ShardState, offset: int, error: str, by: int, body: AnyBody | None) -> list[Need]:
    missing: list[Need] = []
    if isinstance(body, Ticked):
        missing = due.needs_pass_over(state)
    if state.shard.fold > 1 and offset not in state.dead_letters.rows:
        letter_pages.needs_add(state, offset, error, missing)
    if isinstance(body, Sent) and state.shard.fold > 1:
        needs_stream(state, by, body.to, missing)
        if moment := _end(state):
            due.needs_schedule(state, moment, 1, missing)
    return missing


def bury(state: ShardState, offset: int, data: bytes, error: str, by: int, via: int, body: AnyBody | None) -> None:
    """Fold a record as dead. Deterministic, because what raised was pure: it would raise again.

    `body` is None where the bytes are no record, or where even burying it with care has raised.
    """
    said: Said = DeadLettered()
    if isinstance(body, Sent) and state.shard.fold > 1:
        said = _bury_message(state, offset, by, body)
    letter = state.dead_letters.get(offset)
    if letter is None:
        page = letter_pages.add(state, offset, error) if state.shard.fold > 1 else 0
        letter = DeadLetter(data, [], state.now, page)
    letter.errors.append(error)
    state.dead_letters.put(offset, letter, offset)
    state.shard.dead += 1
    if isinstance(body, Ticked):
        due.pass_over(state)
    if via:
        state.effects.append(Answer(via, said))


def _bury_message(state: ShardState, offset: int, by: int, sent: Sent) -> Said:
    """Take its number, so that it can still be delivered in its place."""
    key = by, sent.to
    stream = state.streams.rows[key] or Stream()
    numbers = stream.lanes[sent.lane]
    if sent.n != numbers.last + 1:
        return answer_out_of_turn(numbers, sent)
    if state.accounts.rows[sent.to] is None:
        return DeadLettered()
    at = take_number(state, key, stream, sent, sent.list_version)
    state.notes.append(Placed(at, by, sent.to, sent.lane, sent.n, sent.id, sent.of, False, False, ()))
    if moment := _end(state):
        due.schedule(state, moment, DueItem(0, Lane.NORMAL, offset, DueFor.DEAD_LETTER))
    return Accepted(sent.id, sent.tag, at, sent.list_version)


def _end(state: ShardState) -> int:
    """The moment at which a message that is buried now has failed; 0 for never."""
    life_ms = state.shard.limits.dead_letters_ms
    return due.moment_of(state, state.now + life_ms) if life_ms else 0


def needs_letter_expired(state: ShardState, _by: int, expired: LetterExpired) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.dead_letters, Kept.DEAD_LETTER, expired.offset, missing) and (
        letter := state.dead_letters[expired.offset]
    ):
        if moment := _next_end(state, letter):
            due.needs_schedule(state, moment, 1, missing)
        else:
            letter_pages.needs_remove(state, letter.page, missing)
    return missing


def _next_end(state: ShardState, letter: DeadLetter) -> int:
    """The moment at which a letter ends whose time has not come; 0 if it ends now."""
    life_ms = state.shard.limits.dead_letters_ms
    if not due.is_too_early(state, letter.at, life_ms):
        return 0
    return due.moment_of(state, due.filed_at(state, letter.at) + life_ms)


def step_letter_expired(state: ShardState, _by: int, _via: int, expired: LetterExpired) -> None:
    """Nobody has settled the letter: tell the sender that the message reached none of its devices."""
    letter = state.dead_letters[expired.offset]
    if letter is None:
        return
    if moment := _next_end(state, letter):
        due.schedule(state, moment, DueItem(0, Lane.NORMAL, expired.offset, DueFor.DEAD_LETTER))
        return
    record = decode_record(letter.record)
    by, sent = record.by, record.body
    assert isinstance(sent, Sent)
    for envelope in sent.envelopes:
        failed = Receipted(
            by, sent.to, sent.lane, envelope.device, MessageState.FAILED, Reason.EXPIRED, state.now, ((sent.n, sent.n),)
        )
        state.tell(account_of(by), failed)
    letter_pages.remove(state, letter.page, expired.offset)
    state.dead_letters.put(expired.offset, None, state.offset)
    state.shard.dead -= 1


STEPS: Steps = {2: {LetterExpired: (needs_letter_expired, step_letter_expired)}}
