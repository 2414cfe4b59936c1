"""Errors that the machine causes, told apart from a record that cannot be folded.

Knows:   which exceptions are not the fault of a record.
Never:   lets the machine decide a record's fate (law L3). Such an error stops the loop: log and rows stay
         as they are, and the next start folds the same log to the same state.
"""

from __future__ import annotations

from nightmail.core.shard import FoldTooNew
from nightmail.core.state import BadRow

from .ports import Damaged, EngineError, TooNew

MACHINE_ERRORS = (BadRow, FoldTooNew, MemoryError, OSError, EngineError)
"""A damaged row, a program that is too old, a machine that fails. Any other exception is a bug of ours."""


def as_engine_error(error: Exception) -> EngineError:
    """One of these as the exception that the operator is told, in one sentence."""
    match error:
        case EngineError():
            return error
        case BadRow():
            said: EngineError = Damaged(str(error))
        case FoldTooNew():
            said = TooNew(str(error))
        case MemoryError():
            said = EngineError("there is not enough memory to continue")
        case _:
            said = EngineError(f"the machine failed: {error}")
    said.__cause__ = error
    return said
