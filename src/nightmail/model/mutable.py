"""Rows whose attributes Python stores by itself."""

from __future__ import annotations

from typing import TypeVar

R = TypeVar("R")


def mutable(row: type[R]) -> type[R]:
    """Let Python store a row's attributes by itself, for a fifth of the price.

    A Struct first asks whether the collector should know of it. No row is part of a cycle, so it need not.
    """
    # Only once the class exists, and both of them: they share one slot, which a Struct's class fills last.
    row.__setattr__, row.__delattr__ = object.__setattr__, object.__delattr__  # type: ignore[method-assign]
    return row
