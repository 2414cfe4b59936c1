"""A record that could not be applied: set aside, so that it blocks nothing and is not lost."""

from __future__ import annotations

from nightmail.model.records import AnyBody, Ticked
from nightmail.model.rows import DeadLetter, Need

from .due import needs_pass_over, pass_over
from .state import State


def needs_bury(state: State, _by: int, body: AnyBody) -> list[Need]:
    return needs_pass_over(state) if isinstance(body, Ticked) else []


def bury(state: State, offset: int, data: bytes, error: str, body: AnyBody | None = None) -> None:
    """Fold a record as dead. Deterministic, because what raised was pure: it would raise again.

    `body` is None where the bytes are no record.
    """
    letter = state.dead_letters.get(offset) or DeadLetter(data, [], state.now)
    letter.errors.append(error)
    state.dead_letters.put(offset, letter, offset)
    state.shard.dead += 1
    if isinstance(body, Ticked):
        pass_over(state)
