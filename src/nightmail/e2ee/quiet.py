"""Values that hold secrets, and do not show them.

Spec:    none; a precaution. What is printed, logged or raised by accident must not be a key.
Knows:   that a state is a value: a step returns a new one, and the old one stays valid.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Quiet(Struct, frozen=True, array_like=True, gc=False):
    """A frozen value whose repr is its name."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []
