"""A dead letter is settled, once: it stays as a line for the operator, without content, for a while.

Knows:   the letter, and how many wait.
Touches: those. When it ends is planned since it was buried (`endings.py`).
"""

from __future__ import annotations

from nightmail.core.state import ShardState, missing_row
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.rows import Kept, Need

from .burying import copies_of, message_in


def needs_settle(state: ShardState, offset: int, missing: list[Need]) -> None:
    missing_row(state.dead_letters, Kept.DEAD_LETTER, offset, missing)


def settle(state: ShardState, offset: int, status: LetterStatus) -> None:
    letter = state.dead_letters.there(offset)
    assert letter.status is LetterStatus.WAITING, letter.status
    letter.status, letter.settled_at = status, state.now
    if letter.stamp:
        state.ledger.buried -= copies_of(message_in(letter)[1])
    if letter.fold:
        letter.record = b""
    state.dead_letters.put(offset, letter, state.offset)
    state.shard.dead -= 1
