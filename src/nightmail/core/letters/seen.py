"""A dead letter as an operator sees it. `letter_pages.py` lists them by error class.

Knows:   letters, and of a failed call its schedule and content.
Never:   is part of the fold.
"""

from __future__ import annotations

from msgspec import Struct

from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.ids import account_of
from nightmail.model.letter_rows import DeadLetter, LetterStatus
from nightmail.model.records import GroupSealed, GroupSent, Sent, decode_record
from nightmail.model.records.record import BadRecord
from nightmail.model.rows import Kept, Need
from nightmail.model.schedule_rows import CallContent, CallTarget


class OriginalMessage(Struct, frozen=True):
    """What could not be delivered. Empty fields: it is no message, or it is settled and its content is gone."""

    msg_id: str = ""
    sender: int = 0
    """A device; of a call, an account."""
    recipient: int | str = 0
    """An account, a group or a URL."""
    content: tuple[bytes, ...] = ()
    """Sealed; of a call, as it is."""
    timestamp: int = 0
    """When it was accepted."""


class LetterSeen(Struct, frozen=True):
    offset: int
    """In the log of this shard: with the shard's index, where it came from."""
    original: OriginalMessage
    errors: tuple[str, ...]
    """What went wrong. The first is its error class."""
    retry_count: int
    first_attempt: int
    last_attempt: int
    at: int
    """When it became a dead letter."""
    status: LetterStatus
    settled_at: int
    is_replayable: bool


def needs_letter(state: ShardState, offset: int) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.dead_letters, Kept.DEAD_LETTER, offset, missing) and (
        (letter := state.dead_letters[offset]) and letter.serial
    ):
        missing_pair(state.schedules, Kept.SCHEDULE, letter.account, letter.serial, missing)
    return missing


def letter_seen(state: ShardState, offset: int) -> LetterSeen | None:
    letter = state.dead_letters[offset]
    if letter is None:
        return None
    if letter.device:
        original = OriginalMessage(recipient=account_of(letter.device))
    else:
        original = _called(state, letter) if letter.serial else _sent(letter)
    return LetterSeen(
        offset, original, tuple(letter.errors), letter.retry_count, letter.first_attempt or letter.at,
        letter.last_attempt or letter.at, letter.at, letter.status, letter.settled_at, is_replayable(letter),
    )  # fmt: skip


def is_replayable(letter: DeadLetter) -> bool:
    """A call, a push, or a message that took its number when it was buried."""
    return letter.status is LetterStatus.WAITING and bool(letter.serial or letter.device or letter.stamp)


def _called(state: ShardState, letter: DeadLetter) -> OriginalMessage:
    schedule = state.schedules[letter.account, letter.serial]
    if schedule is None or not isinstance(schedule.target, CallTarget):
        return OriginalMessage(sender=letter.account)
    content = (schedule.content.content,) if isinstance(schedule.content, CallContent) else ()
    return OriginalMessage(schedule.id, letter.account, schedule.target.url, content, schedule.made_at)


def _sent(letter: DeadLetter) -> OriginalMessage:
    try:
        record = decode_record(letter.record)
    except BadRecord:
        return OriginalMessage()
    at = letter.stamp or letter.at
    match record.body:
        case Sent() as sent:
            content = tuple(envelope.ciphertext for envelope in sent.envelopes)
            return OriginalMessage(sent.id, record.by, sent.to, content, at)
        case GroupSent() as sent:
            return OriginalMessage(sent.id, record.by, sent.group, (sent.ciphertext,), at)
        case GroupSealed() as sealed:
            content = tuple(envelope.ciphertext for envelope in sealed.envelopes)
            return OriginalMessage(sealed.id, record.by, sealed.group, content, at)
        case _:
            return OriginalMessage(sender=record.by)
