"""A record that could not be applied: set aside, so that it blocks nothing and is not lost.

Knows:   the letter, and the stream of a message that was buried.
Touches: those two, the pages that list letters, and the due rows.

Since fold 2 a message that is buried takes its number all the same and is answered *sent*: it stays *sent* until
somebody settles the letter, or until time does (`LetterExpired`). A sender that heard no would void the number, and
then the letter could never be replayed. So is a message to a group since fold 4: nobody has it, and when its time is
over it has failed for the group as a whole.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.groups import sending
from nightmail.core.numbering import answer_out_of_turn, needs_stream, take_number
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Accepted, GroupAccepted, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import account_of, log_of
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.limits import DAY_MS
from nightmail.model.notes import Placed
from nightmail.model.records import (
    AnyBody,
    GroupSealed,
    GroupSent,
    LetterExpired,
    Receipted,
    Sent,
    Ticked,
    decode_record,
)
from nightmail.model.refusals import DeadLettered
from nightmail.model.rows import DueFor, DueItem, Kept, Need, Stream
from nightmail.model.words import Lane, MessageState, Reason

from . import pages as letter_pages

AUDIT_MS = 30 * DAY_MS
"""How long a settled letter is still listed."""


def needs_bury(state: ShardState, offset: int, error: str, by: int, body: AnyBody | None) -> list[Need]:
    missing: list[Need] = []
    if isinstance(body, Ticked):
        missing = due.needs_pass_over(state)
    if state.shard.fold > 1 and offset not in state.dead_letters.rows:
        letter_pages.needs_add(state, offset, error, missing)
    ends = state.knows_schedules
    if isinstance(body, Sent | GroupSent | GroupSealed) and state.shard.fold > 1:
        if isinstance(body, Sent):
            needs_stream(state, by, body.to, missing)
        else:
            missing += sending.needs_buried(state, by, body)
        ends = True
    if ends and (moment := _end(state)):
        due.needs_schedule(state, moment, 1, missing)
    return missing


def bury(state: ShardState, offset: int, data: bytes, error: str, by: int, via: int, body: AnyBody | None) -> None:
    """Fold a record as dead. Deterministic, because what raised was pure: it would raise again.

    `body` is None where the bytes are no record, or where even burying it with care has raised.
    """
    said: Said = DeadLettered()
    stamp = group_seq = 0
    if isinstance(body, Sent | GroupSent | GroupSealed) and state.shard.fold > 1:
        said, stamp = _bury_message(state, offset, by, body)
        group_seq = said.group_seq if stamp and isinstance(said, GroupAccepted) else 0
    letter = state.dead_letters.get(offset)
    if letter is None:
        page = letter_pages.add(state, offset, error) if state.shard.fold > 1 else 0
        letter = DeadLetter(data, [], state.now, page)
        if state.knows_schedules:
            letter.fold, letter.stamp, letter.group_seq = state.shard.fold, stamp, group_seq
            if stamp and isinstance(body, Sent | GroupSent | GroupSealed):
                state.ledger.owed += copies_of(body)
                state.ledger.buried += copies_of(body)
            _plan_end(state, offset)
    letter.errors.append(error)
    state.dead_letters.put(offset, letter, offset)
    state.shard.dead += 1
    if isinstance(body, Ticked):
        due.pass_over(state)
    if via:
        state.effects.append(Answer(via, said))


def _bury_message(state: ShardState, offset: int, by: int, sent: Sent | GroupSent | GroupSealed) -> tuple[Said, int]:
    """Take its number, so that it can still be delivered in its place. Returns its answer, and its stamp or 0."""
    to = sent.to if isinstance(sent, Sent) else sent.group
    stream = state.streams.rows[by, to]
    is_next = sent.n == (stream.lanes[sent.lane].last if stream else 0) + 1
    said = _take_number(state, by, sent) if isinstance(sent, Sent) else sending.bury_message(state, by, sent)
    if not is_next or not isinstance(said, Accepted | GroupAccepted):
        return said or DeadLettered(), 0
    of = None if isinstance(sent, GroupSent) else sent.of
    state.notes.append(Placed(said.at, by, to, sent.lane, sent.n, sent.id, of, False, False, ()))
    if not state.knows_schedules:
        _plan_end(state, offset)
    return said, said.at


def copies_of(message: Sent | GroupSent | GroupSealed) -> int:
    """How many are owed of a message that was buried: one for each device, or one for the group as a whole."""
    return 1 if isinstance(message, GroupSent) else len(message.envelopes)


def _take_number(state: ShardState, by: int, sent: Sent) -> Said | None:
    key = by, sent.to
    stream = state.streams.rows[key] or Stream()
    numbers = stream.lanes[sent.lane]
    if sent.n != numbers.last + 1:
        return answer_out_of_turn(numbers, sent)
    if state.accounts.rows[sent.to] is None:
        return None
    at = take_number(state, key, stream, sent, sent.list_version)
    return Accepted(sent.id, sent.tag, at, sent.list_version)


def _plan_end(state: ShardState, offset: int) -> None:
    if moment := _end(state):
        due.schedule(state, moment, DueItem(0, Lane.NORMAL, offset, DueFor.DEAD_LETTER, due.planned_now(state)))


def _end(state: ShardState) -> int:
    """The moment at which a letter that is buried now is looked at: a message has failed then. 0 for never.

    Since fold 5 also where letters wait for ever: a settled one is forgotten all the same.
    """
    life_ms = state.shard.limits.dead_letters_ms or (AUDIT_MS if state.knows_schedules else 0)
    return due.moment_of(state, state.now + life_ms) if life_ms else 0


def needs_letter_expired(state: ShardState, _by: int, expired: LetterExpired) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.dead_letters, Kept.DEAD_LETTER, expired.offset, missing) and (
        letter := state.dead_letters[expired.offset]
    ):
        if moment := _next_end(state, letter, expired):
            due.needs_schedule(state, moment, 1, missing)
        else:
            letter_pages.needs_remove(state, letter.page, missing)
    return missing


def _next_end(state: ShardState, letter: DeadLetter, expired: LetterExpired) -> int:
    """The moment at which a letter ends whose time has not come; 0 if it ends now."""
    return due.too_early_until(state, expired.planned, letter.at, state.shard.limits.dead_letters_ms)


def step_letter_expired(state: ShardState, _by: int, _via: int, expired: LetterExpired) -> None:
    """Nobody has settled the letter: tell the sender that the message reached none of its devices."""
    letter = state.dead_letters[expired.offset]
    if letter is None:
        return
    if moment := _next_end(state, letter, expired):
        item = DueItem(0, Lane.NORMAL, expired.offset, DueFor.DEAD_LETTER, expired.planned)
        due.schedule(state, moment, item)
        return
    tell_failed(state, letter)
    letter_pages.remove(state, letter.page, expired.offset)
    state.dead_letters.put(expired.offset, None, state.offset)
    state.shard.dead -= 1


def message_in(letter: DeadLetter) -> tuple[int, Sent | GroupSent | GroupSealed]:
    """Its author, and the message."""
    record = decode_record(letter.record)
    assert isinstance(record.body, Sent | GroupSent | GroupSealed)
    return record.by, record.body


def tell_failed(state: ShardState, letter: DeadLetter) -> int:
    """Its author hears that it has failed: for each device, or for the group as a whole. Returns how often."""
    by, sent = message_in(letter)
    to = sent.to if isinstance(sent, Sent) else sent.group
    devices = [log_of(to)] if isinstance(sent, GroupSent) else [envelope.device for envelope in sent.envelopes]
    for device in devices:
        failed = Receipted(
            by, to, sent.lane, device, MessageState.FAILED, Reason.EXPIRED, state.now, ((sent.n, sent.n),)
        )
        state.tell(account_of(by), failed)
    return len(devices)


STEPS: Steps = {2: {LetterExpired: (needs_letter_expired, step_letter_expired)}}
