"""A record that could not be applied: set aside, so that it blocks nothing and is not lost."""

from __future__ import annotations

from nightmail.model.rows import DeadLetter

from .state import State


def bury(state: State, offset: int, data: bytes, error: str) -> None:
    """Fold a record as dead. Deterministic, because what raised was pure: it would raise again."""
    letter = state.dead_letters.get(offset) or DeadLetter(data, [], state.now)
    letter.errors.append(error)
    state.dead_letters.put(offset, letter, offset)
    state.shard.dead += 1
