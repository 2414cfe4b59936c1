"""The table in which each module says which records it takes.

A module of this room ends in `STEPS`: fold version → record → (needs, step), for the records that this version adds
or takes differently. `step.py` puts the tables of all modules together. A module whose steps may be tried without
asking for their needs names those records in `OPTIMISTIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from nightmail.model.records import AnyBody
from nightmail.model.rows import Need

from .state import NOTHING, ShardState

Needs: TypeAlias = Callable[[ShardState, int, Any], Sequence[Need]]
"""(state, author, body) → the rows that are missing."""
Step: TypeAlias = Callable[[ShardState, int, int, Any], None]
"""(state, author, answer address, body)."""
Fold: TypeAlias = Mapping[type[AnyBody], tuple[Needs, Step]]
Steps: TypeAlias = Mapping[int, Fold]


def needs_nothing(_state: ShardState, _by: int, _body: AnyBody) -> Sequence[Need]:
    return NOTHING
