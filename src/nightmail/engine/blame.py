"""Whose fault it is that something raised: a record's, or the machine's under it.

Never:   lets the machine decide a record's fate (law L3). It stops the loop instead: log and rows stay
         as they are, and the next start folds the same log to the same state.
"""

from __future__ import annotations

from nightmail.core.shard import FoldTooNew
from nightmail.core.state import BadRow

from .ports import Damaged, EngineError, TooNew

NOT_THE_RECORDS = (BadRow, FoldTooNew, MemoryError, OSError, EngineError)
"""A damaged row, a program that is too old, a machine that fails. Whatever else raises is a mistake of ours."""


def sentence(error: Exception) -> EngineError:
    """What the operator is told about one of these, under the name that says what to do about it."""
    match error:
        case EngineError():
            return error
        case BadRow():
            said: EngineError = Damaged(str(error))
        case FoldTooNew():
            said = TooNew(str(error))
        case MemoryError():
            said = EngineError("there is not enough memory to go on")
        case _:
            said = EngineError(f"the machine failed: {error}")
    said.__cause__ = error
    return said
